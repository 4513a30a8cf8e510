package conv

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestReplan makes a plan for other heights first: what it computes then is right.
func TestReplan(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		rapid.Check(t, func(r *rapid.T) {
			s := draw(r)
			other := s
			other.H += rapid.IntRange(0, 12).Draw(r, "more rows")
			c, err := New(other, Config{Level: name})
			if err != nil {
				r.Skip()
			}
			for _, h := range []int{max(1, s.KH-2*s.PadH), s.H} {
				if err := c.Replan(h); err != nil {
					r.Fatal(err)
				}
			}
			p := newProblem(s.withOnes(), 2)
			a := p.load(c, func(n int) []float32 { return make([]float32, n) })
			p.run(c, a, 0.5)
			if err := p.verify(c, a); err != nil {
				r.Fatalf("%v, planned for %d rows before: %v", s, other.H, err)
			}
		})
	})
}

// TestReplanInPlace: recordings of any length are planned in the memory of the longest.
func TestReplanInPlace(t *testing.T) {
	for _, s := range []Shape{
		{C: 1, H: 600, W: 161, O: 32, KH: 11, KW: 41, StrideH: 2, StrideW: 2},
		{C: 32, H: 295, W: 61, O: 32, KH: 11, KW: 21, StrideW: 2},
		{C: 20, H: 90, W: 9, O: 35, KH: 3, KW: 3, PadH: 1, PadW: 1},
		{C: 16, H: 90, W: 9, O: 32, KH: 1, KW: 1, StrideH: 2, StrideW: 2},
	} {
		c, err := New(s, Config{})
		if err != nil {
			t.Fatal(err)
		}
		h := s.H
		if n := testing.AllocsPerRun(50, func() {
			h--
			if err := c.Replan(h); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations for fewer rows", s, n)
		}
		before := c.Shape()
		if err := c.Replan(s.KH - 2*s.PadH - 1); err == nil || !strings.Contains(err.Error(), "plan convolution") || c.Shape() != before {
			t.Errorf("%v, less rows than the filter: %v", s, err)
		}
	}
}
