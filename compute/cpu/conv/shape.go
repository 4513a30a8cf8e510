package conv

import "fmt"

// Shape is a convolution of a picture C×H×W with O filters of C/Groups×KH×KW:
//
//	y[o][i][j] = b[o] + Σ_c Σ_u Σ_v w[o][c][u][v] · x[g·C/Groups + c][i·StrideH + u − PadH][j·StrideW + v − PadW]
//
// where g = o·Groups/O is the group of filter o, and pixels outside the picture
// are zero. Zero strides and groups stand for 1.
type Shape struct {
	C, H, W          int // input
	O                int // output channels
	KH, KW           int // filter
	StrideH, StrideW int
	PadH, PadW       int
	Groups           int
}

// OutH and OutW are the rows and columns of the output.
func (s Shape) OutH() int { return (s.H+2*s.PadH-s.KH)/max(1, s.StrideH) + 1 }

// OutW is the number of columns of the output.
func (s Shape) OutW() int { return (s.W+2*s.PadW-s.KW)/max(1, s.StrideW) + 1 }

// Weights is the number of elements of the filters, [O][C/Groups][KH][KW].
func (s Shape) Weights() int { return s.O * (s.C / max(1, s.Groups)) * s.KH * s.KW }

// String names the shape in errors: 3×3/2 64→128 @56×56.
func (s Shape) String() string {
	out := fmt.Sprintf("%d×%d", s.KH, s.KW)
	switch {
	case s.StrideH != s.StrideW:
		out += fmt.Sprintf("/%d,%d", s.StrideH, s.StrideW)
	case s.StrideH > 1:
		out += fmt.Sprintf("/%d", s.StrideH)
	}
	out += fmt.Sprintf(" %d→%d @%d×%d", s.C, s.O, s.H, s.W)
	if s.PadH != 0 || s.PadW != 0 {
		out += fmt.Sprintf(" pad %d,%d", s.PadH, s.PadW)
	}
	if s.Groups > 1 {
		out += fmt.Sprintf(" in %d groups", s.Groups)
	}
	return out
}

// withOnes puts ones where zeros stand for them.
func (s Shape) withOnes() Shape {
	for _, p := range []*int{&s.StrideH, &s.StrideW, &s.Groups} {
		if *p == 0 {
			*p = 1
		}
	}
	return s
}

// normal fills in what zero stands for and refuses what cannot be computed.
func (s Shape) normal() (Shape, error) {
	s = s.withOnes()
	bad := func(format string, args ...any) (Shape, error) {
		return s, fmt.Errorf("plan convolution %v: %s", s, fmt.Sprintf(format, args...))
	}
	for _, f := range []struct {
		name  string
		value int
		least int
	}{
		{"C", s.C, 1}, {"H", s.H, 1}, {"W", s.W, 1}, {"O", s.O, 1}, {"KH", s.KH, 1}, {"KW", s.KW, 1},
		{"StrideH", s.StrideH, 1}, {"StrideW", s.StrideW, 1}, {"PadH", s.PadH, 0}, {"PadW", s.PadW, 0}, {"Groups", s.Groups, 1},
	} {
		if f.value < f.least || f.value > limit {
			return bad("%s is %d; it must lie between %d and %d", f.name, f.value, f.least, limit)
		}
	}
	if s.C%s.Groups != 0 || s.O%s.Groups != 0 {
		return bad("%d groups divide %d input and %d output channels unevenly; choose a divisor of both", s.Groups, s.C, s.O)
	}
	if s.KH > s.H+2*s.PadH || s.KW > s.W+2*s.PadW {
		return bad("the filter is larger than the padded picture of %d×%d; pad more or use a smaller filter", s.H+2*s.PadH, s.W+2*s.PadW)
	}
	return s, nil
}

// limit on each number of a shape: products of four stay far below the range of
// an int.
const limit = 1 << 15
