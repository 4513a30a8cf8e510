package data

import (
	"math"
	"strings"

	"optimus/internal/rng"
)

// GenerateMNIST makes n pictures of digits (a seventh of them for validation, as in the
// original) with the shape of [OpenMNIST]'s set. A digit is a few strokes; how they bend,
// how the digit leans, its size, place and the width of the pen are random. The same n
// and seed always make the same set.
func GenerateMNIST(n int, seed uint64) (*Set, error) {
	if err := checkCount("generate MNIST", n); err != nil {
		return nil, err
	}
	train, valid := newMNIST(), newMNIST()
	cut := n - max(n/7, 1)
	for i := range n {
		dst := train
		if i >= cut {
			dst = valid
		}
		key := rng.NewKey(seed, 'd', 'i', 'g', 'i', 't', uint64(i))
		digit := key.Intn(0, mnistClasses)
		dst.labels = append(dst.labels, byte(digit))
		dst.pixels = append(dst.pixels, writeDigit(strokes[digit], key)...)
	}
	s := newBytePictures("MNIST (generated)", train, valid, strings.Split("0123456789", ""))
	s.Generated = true
	return s, nil
}

// point is a place, x to the right and y down.
type point struct{ x, y float64 }

// strokes are the digits, each in one stroke within -1 to 1.
var strokes = [mnistClasses][]point{
	{{0, -1}, {0.5, -0.7}, {0.6, 0}, {0.5, 0.7}, {0, 1}, {-0.5, 0.7}, {-0.6, 0}, {-0.5, -0.7}, {0, -1}},
	{{-0.3, -0.6}, {0.1, -1}, {0.1, 1}},
	{{-0.5, -0.6}, {-0.2, -1}, {0.3, -1}, {0.5, -0.6}, {0.4, -0.2}, {-0.5, 1}, {0.6, 1}},
	{{-0.5, -0.8}, {0, -1}, {0.5, -0.7}, {0.4, -0.2}, {0, 0}, {0.5, 0.3}, {0.5, 0.7}, {0, 1}, {-0.5, 0.8}},
	{{0.3, 1}, {0.3, -1}, {-0.6, 0.3}, {0.6, 0.3}},
	{{0.5, -1}, {-0.4, -1}, {-0.5, -0.1}, {0, -0.2}, {0.5, 0.1}, {0.5, 0.6}, {0.1, 1}, {-0.5, 0.8}},
	{{0.4, -1}, {-0.2, -0.6}, {-0.5, 0.2}, {-0.3, 0.9}, {0.2, 1}, {0.5, 0.6}, {0.3, 0.1}, {-0.1, 0}, {-0.5, 0.3}},
	{{-0.6, -1}, {0.6, -1}, {0, 1}},
	{{0, 0}, {-0.4, -0.4}, {-0.3, -0.9}, {0.3, -0.9}, {0.4, -0.4}, {0, 0}, {-0.5, 0.4}, {-0.4, 0.9}, {0.4, 0.9}, {0.5, 0.4}, {0, 0}},
	{{0.4, -0.3}, {0, 0}, {-0.4, -0.2}, {-0.4, -0.8}, {0, -1}, {0.4, -0.8}, {0.4, -0.3}, {0.2, 1}},
}

// writeDigit draws a stroke, light on dark.
func writeDigit(stroke []point, key rng.Key) []byte {
	between := func(i uint64, lo, hi float64) float64 { return lo + (hi-lo)*key.Float64(i) }
	size, pen := between(1, 7, 9.5), between(2, 0.8, 1.4)
	lean, turn := between(3, -0.3, 0.3), between(4, -0.2, 0.2)
	x, y := mnistSide/2+between(5, -2, 2), mnistSide/2+between(6, -2, 2)
	sin, cos := math.Sincos(turn)
	placed := make([]point, len(stroke))
	for i, p := range stroke {
		u := p.x + between(uint64(10+2*i), -0.08, 0.08) - lean*p.y
		v := p.y + between(uint64(11+2*i), -0.08, 0.08)
		placed[i] = point{x + size*(u*cos-v*sin), y + size*(u*sin+v*cos)}
	}
	pixels := make([]byte, mnistArea)
	for i := range pixels {
		at := point{float64(i%mnistSide) + 0.5, float64(i/mnistSide) + 0.5}
		near := math.Inf(1)
		for j := 1; j < len(placed); j++ {
			near = min(near, at.distance(placed[j-1], placed[j]))
		}
		pixels[i] = byte(255 * min(max(pen+0.5-near, 0), 1))
	}
	return pixels
}

// distance is that of p from the line from a to b.
func (p point) distance(a, b point) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	t := ((p.x-a.x)*dx + (p.y-a.y)*dy) / (dx*dx + dy*dy)
	t = min(max(t, 0), 1)
	return math.Hypot(p.x-a.x-t*dx, p.y-a.y-t*dy)
}
