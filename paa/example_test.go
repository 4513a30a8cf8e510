package paa_test

import (
	"fmt"

	"optimus/paa"
)

func ExampleAssign() {
	model, err := paa.Lookup("resnet-50")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rule := range paa.Rules() {
		a, err := paa.Assign(rule, model.Sizes, 10)
		if err != nil {
			fmt.Println(err)
			return
		}
		s := a.Stats()
		fmt.Printf("%s: %d requests per step, fullest server %.3f of the mean\n", rule, s.Requests, s.MaxOverMean)
	}
	// Output:
	// mxnet: 247 requests per step, fullest server 1.250 of the mean
	// paa: 157 requests per step, fullest server 1.016 of the mean
}

func ExampleReassign() {
	sizes := []int{900, 300}
	old, err := paa.Assign(paa.RulePAA, sizes, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Both servers stay and a third one joins.
	next, moves, err := paa.Reassign(old, sizes, []int{0, 1}, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range moves {
		fmt.Printf("block %d: %d elements from %d on, server %d to %d\n", m.Block, m.Size, m.Offset, m.From, m.To)
	}
	fmt.Println("parameters:", next.Stats().Servers)
	// Output:
	// block 0: 200 elements from 400 on, server 0 to 2
	// block 0: 200 elements from 600 on, server 1 to 2
	// parameters: [{400 1} {400 2} {400 1}]
}
