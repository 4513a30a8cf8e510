// Package conv measures the convolutions of package compute/cpu/conv against
// oneDNN's, on one thread, in all three directions.
//
// Both take turns within one run, a few milliseconds each, so that they meet
// the same clock rate and the same neighbours; figures are the median and the best of
// the rounds. Time is the CPU time of the thread where the system tells it (Linux), so
// that time slices given to other processes do not count. Either side has its
// pictures and weights in its own favourite order before the clock starts, as in
// training they have between layers. The results are compared, too.
//
// oneDNN is loaded at run time, without cgo. Where it is absent the report says
// so and has our figures alone.
package conv

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"optimus/compute/cpu/conv"
	"optimus/internal/level"
	"optimus/internal/rng"
)

// Direction is one of a convolution's three computations.
type Direction int

// The directions.
const (
	Forward Direction = iota
	BackwardData
	BackwardWeights
)

// String returns the direction's name.
func (d Direction) String() string {
	return [...]string{"forward", "backward-data", "backward-weights"}[d]
}

// Options say how much to measure. The zero value takes the defaults.
type Options struct {
	Layers []Layer       // default: ResNet50()
	Batch  int           // pictures; default 8
	Rounds int           // turns of each side; default 5
	Slice  time.Duration // length of a turn, at least one batch; default 10 ms
	Level  string        // level of our kernels; default that of the process
}

// Result is one layer in one direction.
type Result struct {
	Layer     Layer
	Direction Direction
	Ours      Times
	OneDNN    Times   // zero if it is absent
	Peer      string  // the implementation that oneDNN chose
	Rate      float64 // ours, GFLOP/s, counting what padding saves as done
	Error     float64 // largest difference of the results over the largest value
}

// Times are of one batch, over the rounds. On a machine that others use, too, the
// best tells more about the code, the median about the machine.
type Times struct{ Median, Best time.Duration }

func (t Times) plus(u Times, n int) Times {
	return Times{t.Median + time.Duration(n)*u.Median, t.Best + time.Duration(n)*u.Best}
}

// Ratio is how much faster t is than u, by the medians and by the best; 0 if u or t is zero.
func (t Times) Ratio(u Times) (median, best float64) {
	if t.Best == 0 || u.Best == 0 {
		return 0, 0
	}
	return float64(u.Median) / float64(t.Median), float64(u.Best) / float64(t.Best)
}

// Report is the outcome of Run.
type Report struct {
	Level   string // of our kernels
	OneDNN  string // version; empty if absent
	Absent  error  // why oneDNN is absent
	Results []Result
}

// Total is the time of all layers, each as often as it occurs, in the given
// directions, or all.
func (r Report) Total(directions ...Direction) (ours, oneDNN Times) {
	for _, q := range r.Results {
		if len(directions) == 0 || slices.Contains(directions, q.Direction) {
			ours = ours.plus(q.Ours, q.Layer.Count)
			oneDNN = oneDNN.plus(q.OneDNN, q.Layer.Count)
		}
	}
	return ours, oneDNN
}

// tolerance of the difference between two float32 sums in different orders,
// relative to the largest result.
const tolerance = 1e-4

// Run measures. The gradient by pictures of a network's first layer, which has at
// most 4 channels, is left out: training does not need it. Run fails if the options
// are out of range, the results of the two sides differ, or ctx ends.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Layers == nil {
		o.Layers = ResNet50()
	}
	if o.Batch == 0 {
		o.Batch = 8
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Slice == 0 {
		o.Slice = 10 * time.Millisecond
	}
	if o.Batch < 0 || o.Rounds < 0 || o.Slice < 0 {
		return Report{}, fmt.Errorf("compare convolutions: batch %d, %d rounds of %v; all must be positive", o.Batch, o.Rounds, o.Slice)
	}
	rep := Report{Level: o.Level}
	if rep.Level == "" {
		var err error
		if rep.Level, err = level.Current(); err != nil {
			return Report{}, fmt.Errorf("compare convolutions: %w", err)
		}
	}
	// The thread's CPU time is ours alone as long as the goroutine stays on it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib, err := oneDNN()
	if err != nil {
		rep.Absent = err
	} else {
		rep.OneDNN = lib.name
	}
	for _, layer := range o.Layers {
		for _, d := range []Direction{Forward, BackwardData, BackwardWeights} {
			if d == BackwardData && layer.Shape.C <= 4 {
				continue
			}
			res, err := measure(ctx, o, layer, d, lib)
			if err != nil {
				return Report{}, fmt.Errorf("compare convolutions: %v of %v: %w", d, layer.Shape, err)
			}
			rep.Results = append(rep.Results, res)
		}
		runtime.GC()
	}
	return rep, nil
}

func measure(ctx context.Context, o Options, layer Layer, d Direction, lib *library) (Result, error) {
	s := layer.Shape
	x, w := fill(1, o.Batch*s.C*s.H*s.W), fill(2, s.Weights())
	dy := fill(3, o.Batch*s.O*s.OutH()*s.OutW())
	c, err := conv.New(s, conv.Config{Level: o.Level})
	if err != nil {
		return Result{}, err
	}
	our := newOurs(c, o.Batch, d, x, w, dy)
	res := Result{Layer: layer, Direction: d}
	sides := []side{{run: our.run, into: &res.Ours}}
	var their *peer
	if lib != nil {
		if their, err = lib.prepare(c.Shape(), o.Batch, d, x, w, dy); err != nil {
			return Result{}, err
		}
		defer lib.release()
		res.Peer = their.name
		sides = append(sides, side{run: their.run, into: &res.OneDNN})
	}
	for range o.Rounds {
		for i := range sides {
			if err := ctx.Err(); err != nil {
				return Result{}, err
			}
			sides[i].turn(o.Slice)
		}
	}
	for _, q := range sides {
		slices.Sort(q.times)
		*q.into = Times{q.times[len(q.times)/2], q.times[0]}
	}
	res.Rate = 2 * float64(len(dy)) * float64(s.Weights()/s.O) / float64(res.Ours.Median)
	if their != nil {
		want, err := their.result()
		if err != nil {
			return Result{}, err
		}
		if res.Error = difference(our.result(), want); !(res.Error <= tolerance) {
			return Result{}, fmt.Errorf("the results differ from oneDNN's by %.2g of the largest; both cannot be right", res.Error)
		}
	}
	return res, nil
}

// side is one that takes turns.
type side struct {
	run   func()
	into  *Times
	times []time.Duration
}

// turn runs a side for a while, after once to fetch its data again, and notes the
// time for one run.
func (s *side) turn(slice time.Duration) {
	s.run()
	n, start := 0, now()
	for n == 0 || now()-start < slice {
		s.run()
		n++
	}
	s.times = append(s.times, (now()-start)/time.Duration(n))
}

// ours is a convolution as package compute/cpu/conv computes it.
type ours struct {
	run    func()
	result func() []float32
}

// newOurs prepares one direction of a batch. x, w and dy are in row-major order.
func newOurs(c *conv.Conv, batch int, d Direction, x, w, dy []float32) ours {
	xs, dys := pack(c.X(), batch, x), pack(c.Y(), batch, dy)
	switch d {
	case Forward:
		pw := make([]float32, c.ForwardSize())
		c.PackForward(pw, w)
		y := pack(c.Y(), batch, nil)
		return ours{
			run: func() {
				c.Forward(samples(c.Y(), y), samples(c.X(), xs), pw, nil, 0, batch)
			},
			result: func() []float32 { return unpack(c.Y(), batch, y) },
		}
	case BackwardData:
		pw := make([]float32, c.BackwardSize())
		c.PackBackward(pw, w)
		dx := pack(c.DX(), batch, nil)
		return ours{
			run: func() {
				c.BackwardData(samples(c.DX(), dx), samples(c.Y(), dys), pw, false, 0, batch)
			},
			result: func() []float32 { return unpack(c.DX(), batch, dx) },
		}
	}
	dw := make([]float32, c.GradientSize())
	return ours{
		run: func() {
			clear(dw)
			c.BackwardWeights(dw, samples(c.X(), xs), samples(c.Y(), dys), batch, 0, c.Tasks())
		},
		result: func() []float32 {
			out := make([]float32, len(w))
			c.UnpackGradient(out, dw)
			return out
		},
	}
}

func samples(l conv.Layout, data []float32) conv.Samples {
	return conv.Samples{Data: data, Stride: l.Size()}
}

func sample(l conv.Layout, data []float32, i int) []float32 { return data[i*l.Size() : (i+1)*l.Size()] }

// pack lays out a batch of pictures; nil stands for zeros.
func pack(l conv.Layout, batch int, chw []float32) []float32 {
	out := make([]float32, batch*l.Size())
	if chw == nil {
		return out
	}
	n := l.C * l.H * l.W
	for i := range batch {
		l.Put(sample(l, out, i), chw[i*n:(i+1)*n])
	}
	return out
}

func unpack(l conv.Layout, batch int, data []float32) []float32 {
	n := l.C * l.H * l.W
	out := make([]float32, batch*n)
	for i := range batch {
		l.Get(out[i*n:(i+1)*n], sample(l, data, i))
	}
	return out
}

func fill(stream uint64, n int) []float32 {
	x := make([]float32, n)
	key := rng.NewKey(1, stream)
	for i := range x {
		x[i] = float32(key.Float64(uint64(i)) - 0.5)
	}
	return x
}

// difference is the largest between two arrays, over the largest of the second.
func difference(got, want []float32) float64 {
	worst, largest := 0.0, 0.0
	for i, v := range want {
		worst = math.Max(worst, math.Abs(float64(got[i])-float64(v)))
		largest = math.Max(largest, math.Abs(float64(v)))
	}
	return worst / largest
}
