package conv

import (
	"fmt"
	"golang.org/x/sys/unix"
	"runtime"
	"sort"
	"testing"
)

func cpu() float64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return float64(t.Nano())
}

type zz struct {
	name string
	fl   float64
	f    func()
	r    []float64
}

func TestZZ(t *testing.T) {
	runtime.LockOSThread()
	x := make([]float32, 1<<20)
	w := make([]float32, 1<<20)
	y := make([]float32, 1<<20)
	mk := func(n, sw int) []tap {
		var taps []tap
		for i := range n {
			taps = append(taps, tap{i * 64, i * 16 * 64, sw})
		}
		return taps
	}
	var cs []*zz
	for _, c := range []struct{ pix, b, taps, skip, tiles int }{{14, 2, 36, 0, 1}, {14, 2, 9, 0, 1}, {14, 2, 9, 0, 4}, {14, 2, 4, 0, 4}, {14, 2, 9, 1, 4}, {7, 4, 9, 0, 4}, {7, 2, 9, 0, 4}, {14, 1, 9, 0, 4}, {12, 2, 9, 0, 4}, {10, 2, 9, 0, 4}, {8, 2, 9, 0, 4}, {6, 4, 9, 0, 4}} {
		tl := tiles{n: c.tiles, pixels: c.pix, blocks: c.b, taps: mk(c.taps, c.skip), kin: 16, xs: 16, ys: 16, plane: 4096}
		cs = append(cs, &zz{name: fmt.Sprint(c), fl: 2 * float64(c.tiles*(c.pix-c.skip)*c.b*16*c.taps*16), f: func() { gather512(&tl, x, 0, w, y, nil) }})
	}
	for _, c := range []struct{ in, b, img, rows, pix int }{{8, 2, 1, 2, 56}, {8, 2, 1, 4, 28}, {8, 2, 2, 7, 7}, {8, 2, 1, 1, 100}, {8, 2, 1, 1, 200}, {8, 2, 1, 1, 400}, {7, 2, 1, 1, 112}, {8, 1, 1, 1, 200}} {
		p := products{inputs: c.in, blocks: c.b, images: c.img, rows: c.rows, pixels: c.pix, xs: 16, xr: 16 * c.pix, xn: 16 * c.pix * c.rows, yr: 16 * c.pix, yn: 16 * c.pix * c.rows, plane: 8192 + 64}
		cs = append(cs, &zz{name: fmt.Sprint("outer", c), fl: 2 * float64(c.in*c.b*16*c.img*c.rows*c.pix), f: func() { outer512(&p, x, y, w) }})
	}
	for range 101 {
		for _, c := range cs {
			n := int(3e7/c.fl) + 1
			c.f()
			t0 := cpu()
			for range n {
				c.f()
			}
			c.r = append(c.r, c.fl*float64(n)/(cpu()-t0))
		}
	}
	for _, c := range cs {
		var q []float64
		for i := range c.r {
			q = append(q, c.r[i]/cs[0].r[i])
		}
		sort.Float64s(q)
		sort.Float64s(c.r)
		fmt.Printf("%-20s med %.1f p90 %.1f  ratio %.3f\n", c.name, c.r[50], c.r[90], q[50])
	}
}
