package nn_test

import (
	"math"

	"optimus/compute"
	"optimus/internal/rng"
)

// reference computes the loss of a Program in float64 with the plainest loops: it
// shares no code with the backends that it checks.
type reference struct {
	p      *compute.Program
	params [][]float64
	aux    [][]float64
	batch  *compute.Batch
	key    compute.Key
	train  bool

	bufs  [][]float64 // [buffer][example*size]
	steps []int       // length of each time axis; 1 for none
	mean  map[int][]float64
	loss  float64
}

func (r *reference) run() float64 {
	r.loss, r.mean, r.bufs = 0, map[int][]float64{}, nil
	r.measure()
	for _, b := range r.p.Buffers {
		r.bufs = append(r.bufs, make([]float64, b.Size()*r.steps[b.Axis]*r.batch.N))
	}
	for _, s := range r.p.Forward {
		if bn, ok := s.Op.(*compute.BatchNorm); ok {
			r.norm(bn)
			continue
		}
		for i := range r.batch.N {
			r.example(s.Op, i)
		}
	}
	return r.loss
}

func (r *reference) measure() {
	r.steps = make([]int, len(r.p.Axes)+1)
	r.steps[0] = 1
	for i, in := range r.p.Inputs {
		if a := r.batch.Inputs[i]; in.Axis != 0 {
			r.steps[in.Axis] = (len(a.F) + len(a.I)) / r.batch.N / in.Size()
		}
	}
	for i, axis := range r.p.Axes {
		if axis.Of != 0 {
			r.steps[i+1] = (r.steps[axis.Of]+2*axis.Pad-axis.Window)/axis.Stride + 1
		}
	}
}

// of returns the length of a buffer's time axis.
func (r *reference) of(b compute.Buf) int { return r.steps[r.p.Buffers[b].Axis] }

func (r *reference) at(b compute.Buf, i int) []float64 {
	size := r.p.Buffers[b].Size() * r.of(b)
	return r.bufs[b][i*size : (i+1)*size]
}

func (r *reference) bias(b, i int) float64 {
	if b == compute.None {
		return 0
	}
	return r.params[b][i]
}

func (r *reference) stream(i int, layer uint64) rng.Key {
	return rng.NewKey(r.key.Seed, uint64(r.key.Epoch), uint64(r.key.Examples[i]), layer)
}

func (r *reference) example(op compute.Op, i int) {
	switch op := op.(type) {
	case *compute.Load:
		y := r.at(op.Y, i)
		for j := range y {
			y[j] = float64(r.batch.Inputs[op.In].F[i*len(y)+j])
		}
	case *compute.Crop:
		r.crop(op, i)
	case *compute.Lookup:
		n := op.T * r.of(op.Y)
		for t, id := range r.batch.Inputs[op.Ids].I[i*n : (i+1)*n] {
			copy(r.at(op.Y, i)[t*op.Width:(t+1)*op.Width], r.params[op.Table][int(id)*op.Width:])
		}
	case *compute.Dense:
		x, y := r.at(op.X, i), r.at(op.Y, i)
		for row := range op.Rows * r.of(op.Y) {
			for o := range op.Out {
				s := r.bias(op.B, o)
				for j := range op.In {
					s += x[row*op.In+j] * r.params[op.W][o*op.In+j]
				}
				y[row*op.Out+o] = s
			}
		}
	case *compute.Conv1D:
		copy(r.at(op.Y, i), r.windows(op, i))
	case *compute.ConvMax:
		maxOverTime(r.windows(&op.Conv1D, i), r.at(op.Y, i))
	case *compute.MaxTime:
		maxOverTime(r.at(op.X, i), r.at(op.Y, i))
	case *compute.ReLU:
		for j, v := range r.at(op.X, i) {
			r.at(op.Y, i)[j] = math.Max(v, 0)
		}
	case *compute.Concat:
		y := r.at(op.Y, i)
		for t := range r.of(op.Y) {
			for j, x := range op.X {
				y = y[copy(y, r.at(x, i)[t*op.Sizes[j]:(t+1)*op.Sizes[j]]):]
			}
		}
	case *compute.Frames:
		for t := range r.of(op.X) {
			for c := range op.C {
				copy(r.at(op.Y, i)[(t*op.C+c)*op.W:][:op.W], r.at(op.X, i)[(c*r.of(op.X)+t)*op.W:])
			}
		}
	case *compute.Add:
		for _, x := range op.X {
			for j, v := range r.at(x, i) {
				r.at(op.Y, i)[j] += v
			}
		}
	case *compute.Dropout:
		for j, v := range r.at(op.X, i) {
			if r.train && r.stream(i, op.Layer).Float64(uint64(j)) < op.Rate {
				v = 0
			} else if r.train {
				v /= 1 - op.Rate
			}
			r.at(op.Y, i)[j] = v
		}
	case *compute.Conv2D:
		r.conv(op, i)
	case *compute.Pool:
		r.pool(op, i)
	case *compute.SoftmaxLoss:
		rows := op.Rows * r.of(op.X)
		for row := range rows {
			x := r.at(op.X, i)[row*op.Classes : (row+1)*op.Classes]
			if int(r.batch.Inputs[op.Labels].I[i*rows+row]) == op.Ignore {
				continue
			}
			total := 0.0
			for _, v := range x {
				total += math.Exp(v)
			}
			r.loss += math.Log(total) - x[r.batch.Inputs[op.Labels].I[i*rows+row]]
		}
	case *compute.AttentionDecoder:
		r.attend(op, i)
	case *compute.CTC:
		r.loss -= math.Log(r.paths(op, i))
	case *compute.Greedy: // adds to the counts alone
	case *compute.Bag:
		n := op.Bags * op.Most
		for j, id := range r.batch.Inputs[op.Ids].I[i*n : (i+1)*n] {
			for k := 0; k < op.Width && int(id) < r.p.Params[op.Table].Shape[0]; k++ {
				r.at(op.Y, i)[j/op.Most*op.Width+k] += r.params[op.Table][int(id)*op.Width+k]
			}
		}
	case *compute.SampledLoss:
		for k, sign := 0, -1.0; k < op.K; k, sign = k+1, 1 {
			s := 0.0
			for j, v := range r.at(op.X, i) {
				s += v * r.at(op.C, i)[k*op.Width+j]
			}
			r.loss += math.Log(1 + math.Exp(sign*s))
		}
	case *compute.LSTM:
		r.recurrent(&op.Recurrent, i, r.lstm)
	case *compute.GRU:
		r.recurrent(&op.Recurrent, i, r.gru)
	case *compute.Tanh:
		for j, v := range r.at(op.X, i) {
			r.at(op.Y, i)[j] = math.Tanh(v)
		}
	case *compute.LastStep:
		if n := r.length(op.Lengths, op.X, i); n > 0 {
			copy(r.at(op.Y, i), r.at(op.X, i)[(n-1)*op.Size:])
		}
	default:
		panic("the reference does not know this operation")
	}
}

func (r *reference) windows(op *compute.Conv1D, i int) []float64 {
	x := r.at(op.X, i)
	var y []float64
	for t := 0; t+op.H <= op.T; t++ {
		for f := range op.F {
			s := r.bias(op.B, f)
			for j := range op.H * op.E {
				s += x[t*op.E+j] * r.params[op.W][f*op.H*op.E+j]
			}
			y = append(y, s)
		}
	}
	return y
}

func maxOverTime(x, y []float64) {
	for f := range y {
		y[f] = math.Inf(-1)
		for t := f; t < len(x); t += len(y) {
			y[f] = math.Max(y[f], x[t])
		}
	}
}

func (r *reference) crop(op *compute.Crop, i int) {
	y, in, out := r.at(op.Y, i), op.From, op.To
	x := r.batch.Inputs[op.In].F[i*in.Size():]
	dy, dx, mirror := (in.H-out.H)/2, (in.W-out.W)/2, false
	if r.train {
		s := r.stream(i, op.Layer)
		dy = s.Intn(0, in.H+2*op.Pad-out.H+1) - op.Pad
		dx = s.Intn(1, in.W+2*op.Pad-out.W+1) - op.Pad
		mirror = op.Mirror && s.Intn(2, 2) == 1
	}
	for c := range out.C {
		for h := range out.H {
			for w := range out.W {
				from := w
				if mirror {
					from = out.W - 1 - w
				}
				if sy, sx := h+dy, from+dx; sy >= 0 && sy < in.H && sx >= 0 && sx < in.W {
					y[(c*out.H+h)*out.W+w] = float64(x[(c*in.H+sy)*in.W+sx])
				}
			}
		}
	}
}

// frame is a picture's geometry at the length of the batch.
func (r *reference) frame(m compute.Image, b compute.Buf) compute.Image {
	if axis := r.p.Buffers[b].Axis; axis != 0 {
		m.H = r.steps[axis]
	}
	return m
}

func (r *reference) conv(op *compute.Conv2D, i int) {
	x, y := r.at(op.X, i), r.at(op.Y, i)
	in, out := r.frame(op.In, op.X), r.frame(op.Out, op.Y)
	ins, outs := in.C/op.Groups, out.C/op.Groups
	for o := range out.C {
		for oy := range out.H {
			for ox := range out.W {
				s := r.bias(op.B, o)
				for c := range ins {
					for ky := range op.KH {
						for kx := range op.KW {
							h, w := oy*op.StrideH+ky-op.PadH, ox*op.StrideW+kx-op.PadW
							if h >= 0 && h < in.H && w >= 0 && w < in.W {
								s += x[((o/outs*ins+c)*in.H+h)*in.W+w] * r.params[op.Filter][((o*ins+c)*op.KH+ky)*op.KW+kx]
							}
						}
					}
				}
				y[(o*out.H+oy)*out.W+ox] = s
			}
		}
	}
}

func (r *reference) pool(op *compute.Pool, i int) {
	x, y := r.at(op.X, i), r.at(op.Y, i)
	in, out := r.frame(op.In, op.X), r.frame(op.Out, op.Y)
	for c := range in.C {
		for oy := range out.H {
			for ox := range out.W {
				s, m, pixels, bordered := 0.0, math.Inf(-1), 0, 0
				for ky := range op.KH {
					for kx := range op.KW {
						h, w := oy*op.StrideH+ky-op.PadH, ox*op.StrideW+kx-op.PadW
						if h < in.H+op.PadH && w < in.W+op.PadW {
							bordered++
						}
						if h < 0 || h >= in.H || w < 0 || w >= in.W {
							continue
						}
						v := x[(c*in.H+h)*in.W+w]
						s, m, pixels = s+v, math.Max(m, v), pixels+1
					}
				}
				switch {
				case op.Avg && op.Inside:
					m = s / float64(pixels)
				case op.Avg:
					m = s / float64(bordered)
				}
				y[(c*out.H+oy)*out.W+ox] = m
			}
		}
	}
}

func (r *reference) norm(op *compute.BatchNorm) {
	area := op.Area * r.of(op.X)
	place := func(c, j int) int { return c*area + j }
	if len(r.p.Buffers[op.X].Shape) == 1 {
		place = func(c, j int) int { return j*op.C + c }
	}
	for c := range op.C {
		var all []float64
		for i := range r.batch.N {
			for j := range area {
				all = append(all, r.at(op.X, i)[place(c, j)])
			}
		}
		mean, variance := 0.0, 0.0
		for _, v := range all {
			mean += v / float64(len(all))
		}
		for _, v := range all {
			variance += (v - mean) * (v - mean) / float64(len(all))
		}
		r.mean[op.Mean], r.mean[op.Var] = append(r.mean[op.Mean], mean), append(r.mean[op.Var], variance)
		if !r.train {
			mean, variance = r.aux[op.Mean][c], r.aux[op.Var][c]
		}
		gamma := r.params[op.Gamma][c]
		if op.FixGamma {
			gamma = 1
		}
		for i := range r.batch.N {
			for j := range area {
				j := place(c, j)
				r.at(op.Y, i)[j] = (r.at(op.X, i)[j]-mean)/math.Sqrt(variance+op.Eps)*gamma + r.params[op.Beta][c]
			}
		}
	}
}
