// Command sgemm generates the microkernels and packing routines of package
// sgemm with avo. It lives in a module of its own, so that users of the project
// never need avo.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("amd64")
	for vectors, tallest := range []int{14, 14, 8} {
		for rows := range tallest {
			avx512(rows+1, vectors+1)
		}
	}
	for rows := range 6 {
		avx2(rows + 1)
	}
	rows16()
	transpose8()
	peak("peak512", func() vec { return ZMM() })
	peak("peak256", func() vec { return YMM() })
	Generate()
}

// function starts a function; none of them keeps its pointers.
func function(name, signature string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
}
