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
	l.each(func(pixel, lane, from int) { dst[pixel+lane] = chw[from] }, func(pixel, lane int) { dst[pixel+lane] = 0 })
}

// Get reads a picture [C][H][W] out of src. It panics if either has another size.
func (l Layout) Get(chw, src []float32) {
	l.check("Layout.Get", len(src), len(chw))
	l.each(func(pixel, lane, to int) { chw[to] = src[pixel+lane] }, func(int, int) {})
}

// each visits the interior pixel by pixel: its lanes with their places in
// [C][H][W], and the lanes past the last channel.
func (l Layout) each(visit func(pixel, lane, chw int), past func(pixel, lane int)) {
	lanes := l.pixel()
	for b := range l.planes() {
		used := min(lanes, l.C-b*lanes)
		for h := range l.H {
			for w := range l.W {
				pixel := b*l.plane() + l.at(h, w)
				for lane := range lanes {
					if lane < used {
						visit(pixel, lane, ((b*lanes+lane)*l.H+h)*l.W+w)
					} else {
						past(pixel, lane)
					}
				}
			}
		}
	}
}

func (l Layout) check(op string, size, chw int) {
	if size != l.Size() || chw != l.C*l.H*l.W {
		panic(fmt.Sprintf("conv: %s: a picture of %d×%d×%d has %d elements and %d in its layout, not %d and %d", op, l.C, l.H, l.W, l.C*l.H*l.W, l.Size(), chw, size))
	}
}
