package compute

// Image is the geometry of a picture of C channels, [C,H,W]. Where its buffer has
// a time axis, time runs down the picture: H is the most rows, and the axis's
// length is how many there are.
type Image struct{ C, H, W int }

// Size returns the number of values.
func (m Image) Size() int { return m.C * m.H * m.W }

// Window slides over a picture: KH×KW pixels, StrideH and StrideW apart, over a
// border of PadH rows and PadW columns on each side.
type Window struct{ KH, KW, StrideH, StrideW, PadH, PadW int }

// Over returns the height and width of the windows that fit into a picture with
// its border.
func (w Window) Over(h, wd int) (int, int) {
	return (h+2*w.PadH-w.KH)/w.StrideH + 1, (wd+2*w.PadW-w.KW)/w.StrideW + 1
}

// Crop is Load with augmentation for pictures: in training it takes a piece of the
// size of To from a random place of an example and a border of Pad zeros around it
// and, if Mirror is set, mirrors it left to right half the time, keyed by (seed,
// epoch, example, Layer). In evaluation it takes the middle. Forward.
type Crop struct {
	In       int
	Y        Buf
	From, To Image
	Pad      int
	Mirror   bool
	Layer    uint64
}

// Conv2D is a convolution of X with W [Out.C, In.C/Groups, KH, KW] (layout OIHW)
// over a border of zeros; group i of Groups reads the i-th part of the input's
// channels and makes the i-th part of the output's. Forward, InputGrad, ParamGrad.
type Conv2D struct {
	IO
	Filter, B int // blocks; B may be None
	In, Out   Image
	Window
	Groups int
}

// BatchNorm is Y = γ·(X-μ)/√(σ²+Eps) + β per channel; μ and σ² are those of the
// batch in training (σ² biased) and Mean and Var in evaluation (Ioffe and Szegedy,
// 2015, algorithm 1). The statistics pushed for Var are biased as well, so that a
// sum over shares is their plain average. X is [C,Area], over time
// [C,T,Area]; or vectors [C], over time [T,C]. With FixGamma γ counts as 1 and has
// gradient 0. Forward, InputGrad, ParamGrad; ParamGrad comes before
// InputGrad, which reads its sums.
type BatchNorm struct {
	IO
	Gamma, Beta int // blocks [C]
	Mean, Var   int // auxiliary arrays [C]
	C, Area     int
	FixGamma    bool
	Eps         float64
}

// Pool takes the maximum, or with Avg the mean, of windows. The last ones may hang
// over the edge ("full" convention) where Out says so. Pixels outside the picture
// never win; a mean divides by the window's pixels inside picture and border, or
// with Inside by those inside the picture. Forward, InputGrad.
type Pool struct {
	IO
	Avg, Inside bool
	In, Out     Image
	Window
}

// Frames makes a sequence of pictures over time: X [C,T,W] to Y [T,C·W].
// Forward, InputGrad.
type Frames struct {
	IO
	C, W int
}

func (o Crop) Uses() Use      { return Use{Inputs: []int{o.In}} }
func (o Conv2D) Uses() Use    { return Use{Blocks: []int{o.Filter, o.B}} }
func (o BatchNorm) Uses() Use { return Use{Blocks: []int{o.Gamma, o.Beta}, Aux: []int{o.Mean, o.Var}} }
func (Pool) Uses() Use        { return Use{} }
func (Frames) Uses() Use      { return Use{} }

func (o Crop) Touch(Pass) (reads, writes []Buf) { return nil, []Buf{o.Y} }

// Touch differs from the usual in that the input's gradient needs X.
func (o BatchNorm) Touch(p Pass) (reads, writes []Buf) {
	if p == InputGrad {
		return []Buf{o.X, o.DY}, []Buf{o.DX}
	}
	return o.IO.Touch(p)
}

// Touch differs from the usual in that the gradient of a maximum goes where it was.
func (o Pool) Touch(p Pass) (reads, writes []Buf) {
	if p == InputGrad && !o.Avg {
		return []Buf{o.X, o.Y, o.DY}, []Buf{o.DX}
	}
	return o.IO.Touch(p)
}
