// Command sgemm generates the microkernels and packing routines of package
// sgemm with avo. It lives in a module of its own, so that users of the project
// never need avo.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("amd64")
	for rows := 1; rows <= 14; rows++ {
		kernel512(rows, 1)
		kernel512(rows, 2)
	}
	for rows := 1; rows <= 8; rows++ {
		kernel512(rows, 3)
	}
	for rows := 1; rows <= 6; rows++ {
		kernel256(rows)
	}
	for vectors := 1; vectors <= 3; vectors++ {
		rows512(vectors)
	}
	rows256()
	transpose16()
	transpose8()
	Generate()
}

// function starts a function; none of them keeps its pointers.
func function(name, signature string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
}
