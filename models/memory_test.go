package models_test

import (
	"runtime"
	"testing"

	"optimus/compute"
	"optimus/compute/cpu"
)

// nine are the workloads of Table 1, in its order.
func nine() []string {
	return []string{"resnext-110", "resnet-50", "inception-bn", "kaggle", "cnn-rand", "dssm", "rnn-lstm", "seq2seq", "deepspeech2"}
}

// TestMemory compares what an executable of the full model takes with a count by hand:
// the weights, their gradients, and every value that a layer makes, with its gradient.
// For what else it keeps (weights in the order of the kernels, the gates of recurrent
// cells) half of that is allowed.
func TestMemory(t *testing.T) {
	share := map[string]int{"resnext-110": 16, "resnet-50": 4, "inception-bn": 4, "kaggle": 16, "deepspeech2": 2}
	for _, name := range nine() {
		w := lookup(t, name)
		n, ok := share[name]
		if !ok {
			n = w.Batch
		}
		p, err := w.Full()
		if err != nil {
			t.Fatal(err)
		}
		counted := 0
		for _, b := range p.Params {
			counted += 2 * b.Size()
		}
		for _, b := range p.Buffers {
			counted += n * b.Size() * p.Steps(b.Axis)
		}
		before := heap()
		e, err := cpu.Compile(p, n)
		if err != nil {
			t.Fatal(err)
		}
		b := zeros(p, 1, 64) // what a first step allocates does not depend on its size
		for block, param := range p.Params {
			if param.Rows {
				setRows(t, e, block, b)
			}
		}
		if _, err := e.Train(b, compute.Key{}, compute.Hooks{}); err != nil {
			t.Fatal(err)
		}
		taken := float64(heap() - before)
		ratio := taken / float64(4*counted)
		t.Logf("%s, %d examples: %.1f MB, %.2f of what is counted", name, n, taken/1e6, ratio)
		if ratio > 1.5 {
			t.Errorf("%s, %d examples: %.1f MB, %.2f of what is counted; want at most 1.5", name, n, taken/1e6, ratio)
		}
		e.Close()
	}
}

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// zeros is a batch of zeros: dark pictures, the first word again and again, sequences of
// up to so many time steps of which all is padding.
func zeros(p *compute.Program, n, steps int) *compute.Batch {
	b := &compute.Batch{N: n}
	for _, in := range p.Inputs {
		size := n * in.Size() * min(steps, p.Steps(in.Axis))
		if in.Limit > 0 {
			b.Inputs = append(b.Inputs, compute.Array{I: make([]int32, size)})
		} else {
			b.Inputs = append(b.Inputs, compute.Array{F: make([]float32, size)})
		}
	}
	return b
}

// setRows sets the rows of a block that a batch needs to zero.
func setRows(t testing.TB, e compute.Executable, block int, b *compute.Batch) {
	t.Helper()
	rows, err := e.Rows(block, b)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, e.Program().Params[block].RowSize())
	for _, r := range rows {
		e.SetRow(block, int(r), 0, row)
	}
}
