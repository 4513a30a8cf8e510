// Package pooling takes the maximum or the mean over windows of pictures that lie in planes of 16
// channels (package plane), and differentiates it.
//
// A Plan holds the windows of one size of picture. Windows are clipped to the picture: pixels of the
// padding never count for a maximum, and add nothing to a sum. All functions work on one plane, allocate
// nothing, write nothing into halos, and give the same bits at every level of the processor; planes
// are the unit that a caller spreads over cores.
//
// The number of windows follows MXNet. Along an axis of n pixels, with kernel k, stride s and padding p,
//
//	valid: ⌊(n+2p-k)/s⌋ + 1    full: ⌈(n+2p-k)/s⌉ + 1
//
// so that "full" leaves no pixel out and its last window may hang over the padding.
package pooling

import "fmt"

//go:generate go run -C ../gen ./pooling -out ../pooling/pooling_amd64.s -stubs ../pooling/pooling_amd64.go -pkg pooling

// An Axis is how windows lie along the height or the width of a picture.
type Axis struct{ Kernel, Stride, Pad int }

// A Window is the geometry of a pooling.
type Window struct {
	H, W Axis
	Full bool // MXNet's convention "full" instead of "valid"
	// CountPad counts the padding in a mean: the divisor is the size of the window, clipped only
	// where it hangs over the padding too. Otherwise it is the number of pixels of the picture.
	CountPad bool
}

// Square is a window of k·k pixels.
func Square(k, stride, pad int) Window {
	a := Axis{k, stride, pad}
	return Window{H: a, W: a}
}

// A span is the part of a window along an axis: n pixels of the picture from index from, and
// how many with the padding.
type span struct{ from, n, padded int }

// spans returns the windows along an axis of n pixels.
func (a Axis) spans(name string, n int, full bool) ([]span, error) {
	if a.Kernel <= 0 || a.Stride <= 0 || a.Pad < 0 || a.Pad >= a.Kernel {
		return nil, fmt.Errorf("plan pooling: %s: kernel %d, stride %d, padding %d; kernel and stride must be positive and the padding less than the kernel", name, a.Kernel, a.Stride, a.Pad)
	}
	room := n + 2*a.Pad - a.Kernel
	if n <= 0 || room < 0 {
		return nil, fmt.Errorf("plan pooling: %s: a kernel of %d does not fit into %d pixels with a padding of %d; take a smaller kernel or a larger picture", name, a.Kernel, n, a.Pad)
	}
	if full {
		room += a.Stride - 1
	}
	out := make([]span, room/a.Stride+1)
	for i := range out {
		lo := i*a.Stride - a.Pad
		hi := min(lo+a.Kernel, n+a.Pad)
		first := max(lo, 0)
		out[i] = span{first, min(hi, n) - first, hi - lo}
		if out[i].n <= 0 {
			return nil, fmt.Errorf("plan pooling: %s: window %d lies outside of the %d pixels; take a stride of at most the kernel, or the convention \"valid\"", name, i, n)
		}
	}
	return out, nil
}

// A Plan is a pooling of pictures of one size. It is read only.
type Plan struct {
	window     Window
	h, w       int
	rows, cols []span
	lo, hi     int // the columns [lo,hi) have windows inside the picture
}

// New plans a pooling of pictures with h rows of w pixels.
func New(window Window, h, w int) (*Plan, error) {
	p := &Plan{window: window, h: h, w: w}
	var err error
	if p.rows, err = window.H.spans("height", h, window.Full); err != nil {
		return nil, err
	}
	if p.cols, err = window.W.spans("width", w, window.Full); err != nil {
		return nil, err
	}
	whole := func(s span) bool { return s.n == window.W.Kernel }
	for p.lo < len(p.cols) && !whole(p.cols[p.lo]) {
		p.lo++
	}
	for p.hi = p.lo; p.hi < len(p.cols) && whole(p.cols[p.hi]); p.hi++ {
	}
	return p, nil
}

// Out returns the size of the output.
func (p *Plan) Out() (h, w int) { return len(p.rows), len(p.cols) }
