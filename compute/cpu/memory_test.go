package cpu

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/compute"
)

// TestPlace checks that buffers which live at the same time do not overlap, that
// each begins a cache line, and that no more is taken than for one behind another.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "buffers")
		sizes, lives, sum := make([]int, n), make([]life, n), 0
		for b := range n {
			sizes[b] = rapid.IntRange(1, 100).Draw(t, "size")
			lives[b].first = rapid.IntRange(0, 20).Draw(t, "first")
			lives[b].last = lives[b].first + rapid.IntRange(-1, 8).Draw(t, "length")
			sum += roundUp(sizes[b])
		}
		offsets, total := place(sizes, lives)
		if total > sum {
			t.Fatalf("%d elements for buffers of %d", total, sum)
		}
		for a := range n {
			if lives[a].last < lives[a].first {
				continue
			}
			if offsets[a]%align != 0 || offsets[a]+sizes[a] > total {
				t.Fatalf("buffer %d of %d elements lies at %d of %d", a, sizes[a], offsets[a], total)
			}
			for b := range a {
				if lives[a].meets(lives[b]) && lives[b].last >= lives[b].first &&
					offsets[a] < offsets[b]+sizes[b] && offsets[b] < offsets[a]+sizes[a] {
					t.Fatalf("buffers %d and %d live in %v and %v and overlap: %d+%d, %d+%d", a, b, lives[a], lives[b], offsets[a], sizes[a], offsets[b], sizes[b])
				}
			}
		}
	})
}

// TestPlaceReuses checks a chain: each value dies when the next is made.
func TestPlaceReuses(t *testing.T) {
	sizes, lives := []int{100, 100, 100, 100}, []life{{0, 1}, {1, 2}, {2, 3}, {3, 4}}
	if _, total := place(sizes, lives); total != 2*roundUp(100) {
		t.Errorf("%d elements, want room for two buffers", total)
	}
}

// TestMerge has values between a dense layer and the loss, of which those that nobody
// reads again are written over.
func TestMerge(t *testing.T) {
	const x, y, dy, z, dz, u, du = 0, 1, 2, 3, 4, 5, 6
	load := &compute.Load{Y: x}
	dense := &compute.Dense{IO: compute.IO{X: x, DX: compute.None, Y: y, DY: dy}, B: compute.None}
	relu := &compute.ReLU{IO: compute.IO{X: y, DX: dy, Y: z, DY: dz}}
	tanh := &compute.Tanh{IO: compute.IO{X: z, DX: dz, Y: u, DY: du}}
	short, long := &compute.SoftmaxLoss{X: y, DX: dy}, &compute.SoftmaxLoss{X: u, DX: du}
	twice := &compute.Add{Many: compute.Many{X: []compute.Buf{y, y}, Y: z, DY: compute.None}}
	other := &compute.Dense{IO: compute.IO{X: x, DX: compute.None, Y: u, DY: du}, B: compute.None}
	total := &compute.Add{Many: compute.Many{X: []compute.Buf{y, u}, DX: []compute.Buf{dy, du}, Y: z, DY: dz}}
	after := &compute.SoftmaxLoss{X: z, DX: dz}
	more := &compute.ReLU{IO: compute.IO{X: u, DX: du, Y: compute.None, DY: compute.None}} // adds to du
	for name, c := range map[string]struct {
		forward, backward []compute.Op
		alike             bool
		want              []int // whose place x, y, dy, z, dz, u, du have
	}{
		"the loss":            {[]compute.Op{load, dense, short}, []compute.Op{dense}, true, []int{x, y, y, z, dz, u, du}},
		"another reader":      {[]compute.Op{load, dense, short, twice}, []compute.Op{dense}, true, []int{x, y, dy, z, dz, u, du}},
		"another size":        {[]compute.Op{load, dense, short}, []compute.Op{dense}, false, []int{x, y, dy, z, dz, u, du}},
		"needed for its sign": {[]compute.Op{load, dense, relu, tanh, long}, []compute.Op{tanh, relu, dense}, true, []int{x, y, du, y, du, u, du}},
		"a sum":               {[]compute.Op{load, dense, other, total, after}, []compute.Op{total, dense, other}, true, []int{x, y, y, y, y, u, y}},
		"a sum, added to":     {[]compute.Op{load, dense, other, total, after}, []compute.Op{total, more, dense, other}, true, []int{x, y, y, y, y, u, du}},
		"a sum, added later":  {[]compute.Op{load, dense, other, total, after}, []compute.Op{total, dense, more, other}, true, []int{x, y, y, y, y, u, y}},
		"a sum of the same":   {[]compute.Op{load, dense, twice, after}, nil, true, []int{x, y, dy, z, z, u, du}},
	} {
		p := &compute.Program{Buffers: make([]compute.Buffer, 7)}
		for _, op := range c.forward {
			p.Forward = append(p.Forward, compute.Step{Op: op})
		}
		for _, op := range c.backward {
			pass := compute.InputGrad
			if _, ok := op.(*compute.Dense); ok {
				pass = compute.ParamGrad
			}
			p.Backward = append(p.Backward, compute.Step{Op: op, Pass: pass})
		}
		list := lives(p)
		whole := slices.Clone(list)
		got := merge(p, list, func(a, b compute.Buf) bool { return c.alike })
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for b, root := range got {
			if l := list[root]; whole[b].last >= 0 && (l.first > whole[b].first || l.last < whole[b].last) {
				t.Errorf("%s: buffer %d lives in %v, its place in %v", name, b, whole[b], l)
			}
		}
	}
}
