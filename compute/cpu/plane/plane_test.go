package plane

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestWhere numbers all elements of a plane and finds pixels and rows by the layout's definition,
// [H+2·HaloH][W+2·HaloW][16].
func TestWhere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := func(label string) int { return rapid.IntRange(0, 4).Draw(r, label) }
		s := Shape{n("h"), n("w"), n("halo h"), n("halo w")}
		p := Of(s, make([]float32, s.Len()))
		for i := range p.Data {
			p.Data[i] = float32(i)
		}
		at := 0
		for y := -s.HaloH; y < s.H+s.HaloH; y++ {
			if y >= 0 && y < s.H {
				if row := p.Row(y); len(row) != s.W*Lanes || len(row) > 0 && row[0] != float32(at+s.HaloW*Lanes) {
					r.Fatalf("%+v: row %d has %d elements from %v", s, y, len(row), row[:1])
				}
			}
			for x := -s.HaloW; x < s.W+s.HaloW; x++ {
				if pixel := p.Pixel(y, x); len(pixel) != Lanes || pixel[0] != float32(at) {
					r.Fatalf("%+v: pixel (%d,%d) has %d elements from %v, want %d", s, y, x, len(pixel), pixel[0], at)
				}
				at += Lanes
			}
		}
		if at != s.Len() {
			r.Fatalf("%+v has %d elements, want %d", s, s.Len(), at)
		}
	})
}

func TestMisuse(t *testing.T) {
	for _, s := range []Shape{{1, 1, 0, 0}, {-1, -1, 0, 0}} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "17 elements") {
					t.Errorf("%+v: panic %q", s, got)
				}
			}()
			Of(s, make([]float32, 17))
		}()
	}
	for c, want := range map[int]int{0: 0, 1: 1, 16: 1, 17: 2} {
		if got := Blocks(c); got != want {
			t.Errorf("%d channels take %d blocks, want %d", c, got, want)
		}
	}
}
