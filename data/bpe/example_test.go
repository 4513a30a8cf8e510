package bpe_test

import (
	"fmt"

	"optimus/data/bpe"
)

func Example() {
	var words bpe.Counts
	words.Add([]byte("low low low low low lower lower newest newest newest newest newest newest widest widest widest"))
	merges := bpe.Learn(&words, 6)
	pieces := merges.NewEncoder().Append(nil, []byte("the lowest"))
	fmt.Printf("%s\n%s\n", pieces, bpe.Decode(pieces))
	text, _ := merges.MarshalText()
	fmt.Printf("%s", text)
	// Output:
	// t@@ h@@ e lo@@ west
	// the lowest
	// #version: 0.2
	// s t</w>
	// e st</w>
	// l o
	// w est</w>
	// n e
	// ne west</w>
}
