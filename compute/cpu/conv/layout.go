package conv

import "fmt"

// Lanes is how many channels lie side by side in the blocked layout.
const Lanes = 16

// Halo is how many rows of zeros lie above and below a picture, and how many
// columns left and right of it.
type Halo struct{ H, W int }

// Layout says where the pixels of one picture lie. The blocked layout is
//
//	[⌈C/16⌉][H + 2·Halo.H][W + 2·Halo.W][16]
//
// and the plain one, which only the input of a first layer has,
//
//	[C][H + 2·Halo.H][W + 2·Halo.W]
//
// The halo and, in the blocked layout, the lanes past channel C are zero. Whoever
// allocates a picture clears it once; every function here that writes one leaves
// the halo alone and writes zeros into the lanes past C.
type Layout struct {
	C, H, W int
	Halo    Halo
	Plain   bool
}

// Size is the number of elements of a picture, halo and all.
func (l Layout) Size() int { return l.planes() * l.plane() }

func (l Layout) planes() int {
	if l.Plain {
		return l.C
	}
	return blocks(l.C)
}

// pixel, row and plane are the elements from one to the next.
func (l Layout) pixel() int {
	if l.Plain {
		return 1
	}
	return Lanes
}
func (l Layout) row() int   { return (l.W + 2*l.Halo.W) * l.pixel() }
func (l Layout) plane() int { return (l.H + 2*l.Halo.H) * l.row() }

// at is where pixel (h,w) of the first plane lies; both may lie in the halo.
func (l Layout) at(h, w int) int { return (h+l.Halo.H)*l.row() + (w+l.Halo.W)*l.pixel() }

func blocks(channels int) int { return (channels + Lanes - 1) / Lanes }

// Put writes a picture [C][H][W] into dst. It panics if either has another size.
func (l Layout) Put(dst, chw []float32) {
	l.check("Layout.Put", len(dst), len(chw))
	step := l.pixel()
	l.rows(func(at, from int) {
		row := dst[at : at+(l.W-1)*step+1]
		if from < 0 {
			for w := 0; w < len(row); w += step {
				row[w] = 0
			}
			return
		}
		for w, v := range chw[from : from+l.W] {
			row[w*step] = v
		}
	})
}

// Get reads a picture [C][H][W] out of src. It panics if either has another size.
func (l Layout) Get(chw, src []float32) {
	l.check("Layout.Get", len(src), len(chw))
	step := l.pixel()
	l.rows(func(at, to int) {
		if to < 0 {
			return
		}
		row := src[at : at+(l.W-1)*step+1]
		for w := range chw[to : to+l.W] {
			chw[to+w] = row[w*step]
		}
	})
}

// rows visits the rows of every lane: where their first pixels lie here and in
// [C][H][W], or -1 past the last channel.
func (l Layout) rows(visit func(at, chw int)) {
	lanes := l.pixel()
	for c := range l.planes() * lanes {
		for h := range l.H {
			chw := -1
			if c < l.C {
				chw = (c*l.H + h) * l.W
			}
			visit(c/lanes*l.plane()+l.at(h, 0)+c%lanes, chw)
		}
	}
}

func (l Layout) check(op string, size, chw int) {
	if size != l.Size() || chw != l.C*l.H*l.W {
		panic(fmt.Sprintf("conv: %s: a picture of %d×%d×%d has %d elements and %d in its layout, not %d and %d", op, l.C, l.H, l.W, l.C*l.H*l.W, l.Size(), chw, size))
	}
}
