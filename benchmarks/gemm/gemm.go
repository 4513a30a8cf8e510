// Package gemm measures package sgemm against OpenBLAS and against what the
// processor could do at most, on one thread.
//
// Ours, OpenBLAS and a loop of nothing but fused multiply-adds take turns
// within one run, a few milliseconds each, so that all meet the same clock rate
// and the same neighbours; each figure is the median over the rounds. Time is
// the CPU time of the thread where the system tells it (Linux), so that time
// slices given to other processes do not count.
//
// OpenBLAS is loaded at run time, without cgo. Where it is absent the report
// says so and has our figures alone. It compares with the best kernels that
// OpenBLAS has for the processor, also where OpenBLAS does not recognise that.
package gemm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"optimus/compute/cpu/sgemm"
	"optimus/internal/rng"
)

// Shape is one product C = op(A)·op(B): op(A) is M×K, op(B) is K×N; A or B is
// stored transposed if TransA or TransB.
type Shape struct {
	M, N, K        int
	TransA, TransB bool
}

// String returns the shape as in "64 × 576 × 3136 tb".
func (s Shape) String() string {
	text := fmt.Sprintf("%d × %d × %d", s.M, s.N, s.K)
	if s.TransA {
		text += " ta"
	}
	if s.TransB {
		text += " tb"
	}
	return text
}

// Shapes are the products that training meets: squares, convolutions as
// products (with their gradients), and recurrent layers (with theirs).
func Shapes() []Shape {
	return []Shape{
		{M: 64, N: 64, K: 64},
		{M: 128, N: 128, K: 128},
		{M: 256, N: 256, K: 256},
		{M: 384, N: 384, K: 384},
		{M: 512, N: 512, K: 512},
		{M: 768, N: 768, K: 768},
		{M: 1024, N: 1024, K: 1024},
		{M: 64, N: 3136, K: 576},
		{M: 256, N: 196, K: 2304},
		{M: 512, N: 784, K: 512},
		{M: 64, N: 576, K: 3136, TransB: true},
		{M: 576, N: 3136, K: 64, TransA: true},
		{M: 256, N: 3136, K: 64},
		{M: 20, N: 2600, K: 650},
		{M: 20, N: 650, K: 2600, TransB: true},
		{M: 650, N: 2600, K: 20, TransA: true},
		{M: 700, N: 2600, K: 650},
		{M: 700, N: 10000, K: 650},
	}
}

// Options say how much to measure. The zero value takes the defaults.
type Options struct {
	Shapes []Shape       // default: Shapes()
	Rounds int           // turns of each contestant; default 9
	Slice  time.Duration // length of a turn, at least one product; default 10 ms
	Level  string        // level of our kernels; default that of the process
	Core   string        // OpenBLAS's kernels, by its own names; default its choice, if it knows the processor
}

// Result is one shape's figures, each the median over the rounds; the first four
// are in GFLOP/s.
type Result struct {
	Shape    Shape
	Ours     float64
	Packed   float64 // ours with B packed beforehand
	OpenBLAS float64 // 0 if it is absent
	Peak     float64 // independent fused multiply-adds alone; 0 if the level has none
	Ratio    float64 // of ours to OpenBLAS in the same round; 0 if it is absent
	Share    float64 // of ours in the peak of the same round; 0 if there is none
}

// Report is the outcome of Run.
type Report struct {
	Level    string // of our kernels
	OpenBLAS string // its version and kernels; empty if absent
	Absent   error  // why OpenBLAS is absent
	Results  []Result
}

// Run measures. It fails if the level is unknown or absent here, if OpenBLAS
// lacks the kernels asked for, if a shape is not positive, or if ctx ends.
func Run(ctx context.Context, o Options) (rep Report, err error) {
	if o.Shapes == nil {
		o.Shapes = Shapes()
	}
	if o.Rounds == 0 {
		o.Rounds = 9
	}
	if o.Slice == 0 {
		o.Slice = 10 * time.Millisecond
	}
	if o.Rounds < 0 || o.Slice < 0 {
		return Report{}, fmt.Errorf("compare sgemm: %d rounds of %v; both must be positive", o.Rounds, o.Slice)
	}
	kn, err := kernel(o.Level)
	if err != nil {
		return Report{}, fmt.Errorf("compare sgemm: %w", err)
	}
	// The thread's CPU time is ours alone as long as the goroutine stays on it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	blas, absent := openBLAS(o.Core, kn.Level())
	if absent != nil && o.Core != "" {
		return Report{}, fmt.Errorf("compare sgemm: %w", absent)
	}
	rep = Report{Level: kn.Level(), Absent: absent}
	if blas != nil {
		defer func() { err = errors.Join(err, blas.close()) }()
		rep.OpenBLAS = fmt.Sprintf("OpenBLAS %s with %s kernels", blas.version, blas.core)
	}
	for _, s := range o.Shapes {
		if s.M < 1 || s.N < 1 || s.K < 1 {
			return Report{}, fmt.Errorf("compare sgemm: shape %v; sizes must be positive", s)
		}
		res, err := measure(ctx, o, s, kn, blas)
		if err != nil {
			return Report{}, fmt.Errorf("compare sgemm on %v: %w", s, err)
		}
		rep.Results = append(rep.Results, res)
	}
	return rep, nil
}

func kernel(name string) (sgemm.Kernel, error) {
	if name == "" {
		return sgemm.Current()
	}
	return sgemm.For(name)
}

// contestant is one side of the comparison: run does work of flop operations.
type contestant struct {
	run   func()
	flop  float64
	rates []float64 // by round
}

func measure(ctx context.Context, o Options, s Shape, kn sgemm.Kernel, blas *library) (Result, error) {
	sides := contestants(s, kn, blas)
	for range o.Rounds {
		for i := range sides {
			if err := ctx.Err(); err != nil {
				return Result{}, err
			}
			sides[i].turn(o.Slice)
		}
	}
	var med, ratio [4]float64
	for i, c := range sides {
		med[i], ratio[i] = median(c.rates), median(over(sides[0].rates, c.rates))
	}
	return Result{
		Shape: s, Ours: med[ours], Packed: med[packed], OpenBLAS: med[openblas], Peak: med[peak],
		Ratio: ratio[openblas], Share: ratio[peak],
	}, nil
}

// The contestants.
const (
	ours = iota
	packed
	openblas
	peak
)

// contestants prepares the operands of a shape and all that compute with them.
// One that is absent does nothing.
func contestants(s Shape, kn sgemm.Kernel, blas *library) [4]contestant {
	a, lda := matrix(1, s.M, s.K, s.TransA)
	b, ldb := matrix(2, s.K, s.N, s.TransB)
	c := make([]float32, s.M*s.N)
	var pb sgemm.Packed
	kn.Pack(&pb, s.TransB, s.N, s.K, b, ldb)
	flop := 2 * float64(s.M) * float64(s.N) * float64(s.K)
	sides := [4]contestant{
		ours: {flop: flop, run: func() {
			kn.Gemm(s.TransA, s.TransB, s.M, s.N, s.K, a, lda, b, ldb, false, c, s.N)
		}},
		packed: {flop: flop, run: func() { sgemm.GemmPacked(s.TransA, s.M, a, lda, &pb, false, c, s.N) }},
	}
	if blas != nil {
		sides[openblas] = contestant{flop: flop, run: blas.product(s, a, lda, b, ldb, c)}
	}
	const steps = 20000
	if flop := kn.Peak(1); flop > 0 {
		sides[peak] = contestant{flop: steps * float64(flop), run: func() { kn.Peak(steps) }}
	}
	return sides
}

// matrix returns a rows×cols operand, stored transposed if trans, and its stride.
func matrix(stream uint64, rows, cols int, trans bool) ([]float32, int) {
	x := make([]float32, rows*cols)
	key := rng.NewKey(1, stream)
	for i := range x {
		x[i] = float32(key.Float64(uint64(i)) - 0.5)
	}
	if trans {
		return x, rows
	}
	return x, cols
}

// turn runs the contestant for a while, after once to fetch its data again, and notes its rate.
func (c *contestant) turn(slice time.Duration) {
	if c.run == nil {
		return
	}
	c.run()
	n, start := 0, now()
	for n == 0 || now()-start < slice {
		c.run()
		n++
	}
	c.rates = append(c.rates, c.flop*float64(n)/float64(now()-start))
}

// over returns the quotients of two series, none if one is missing.
func over(x, y []float64) []float64 {
	q := make([]float64, min(len(x), len(y)))
	for i := range q {
		q[i] = x[i] / y[i]
	}
	return q
}

// median returns the middle value, 0 of none.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}
