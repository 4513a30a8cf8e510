package pieces_test

import (
	"fmt"

	"optimus/compute/optim"
	"optimus/ps/pieces"
)

// One server with one weight and two workers: the step is applied when both
// have pushed, and a parked pull is answered then.
func Example() {
	store, err := pieces.New(pieces.Config{
		Params:    []optim.Param{{Name: "w", Shape: []int{1}}},
		Optimizer: optim.Config{Kind: optim.SGD, LR: 0.1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	w := pieces.ID{Block: 0, Offset: 0, Size: 1}
	a, b := pieces.Worker{ID: 0, Incarnation: 1}, pieces.Worker{ID: 1, Incarnation: 1}
	err = store.Install(pieces.Generation{Number: 1, Workers: []pieces.Worker{a, b}, Pieces: []pieces.ID{w}})
	if err == nil {
		err = store.Init(1, 42, 0)
	}
	if err == nil {
		err = store.Commit(1)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	store.Pull(pieces.Request{Generation: 1, Step: 1, Piece: w}, func(a pieces.Answer) {
		fmt.Printf("version %d: %.1f\n", a.Version, a.Values[0])
	})
	// Two examples with gradient −2 each, and one with −8: sums and counts.
	push := pieces.Push{Generation: 1, Step: 1, From: a, Piece: w, Values: []float32{-4}, Weight: 2}
	fmt.Println(store.Push(push))
	fmt.Println(store.Push(push))
	push.From, push.Values, push.Weight = b, []float32{-8}, 1
	fmt.Println(store.Push(push))
	// Output:
	// accepted <nil>
	// duplicate <nil>
	// version 1: 0.4
	// accepted <nil>
}
