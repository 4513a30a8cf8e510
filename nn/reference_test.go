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

	bufs [][]float64 // [buffer][example*size]
	mean map[int][]float64
	loss float64
}

func (r *reference) run() float64 {
	r.loss, r.mean, r.bufs = 0, map[int][]float64{}, nil
	for _, b := range r.p.Buffers {
		r.bufs = append(r.bufs, make([]float64, b.Size*r.batch.N))
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

func (r *reference) at(b compute.Buf, i int) []float64 {
	size := r.p.Buffers[b].Size
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
		for j := range op.Size {
			r.at(op.Y, i)[j] = float64(r.batch.Inputs[op.In].F[i*op.Size+j])
		}
	case *compute.Crop:
		r.crop(op, i)
	case *compute.Lookup:
		for t, id := range r.batch.Inputs[op.Ids].I[i*op.T : (i+1)*op.T] {
			copy(r.at(op.Y, i)[t*op.Width:(t+1)*op.Width], r.params[op.Table][int(id)*op.Width:])
		}
	case *compute.Dense:
		x, y := r.at(op.X, i), r.at(op.Y, i)
		for row := range op.Rows {
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
		for _, x := range op.X {
			y = y[copy(y, r.at(x, i)):]
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
		for row := range op.Rows {
			x := r.at(op.X, i)[row*op.Classes : (row+1)*op.Classes]
			total := 0.0
			for _, v := range x {
				total += math.Exp(v)
			}
			r.loss += math.Log(total) - x[r.batch.Inputs[op.Labels].I[i*op.Rows+row]]
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
	y := r.at(op.Y, i)
	x := r.batch.Inputs[op.In].F[i*len(y):]
	dy, dx, mirror := 0, 0, false
	if r.train {
		s := r.stream(i, op.Layer)
		dy, dx, mirror = s.Intn(0, 2*op.Pad+1)-op.Pad, s.Intn(1, 2*op.Pad+1)-op.Pad, op.Mirror && s.Intn(2, 2) == 1
	}
	for c := range op.C {
		for h := range op.H {
			for w := range op.W {
				from := w
				if mirror {
					from = op.W - 1 - w
				}
				if sy, sx := h+dy, from+dx; sy >= 0 && sy < op.H && sx >= 0 && sx < op.W {
					y[(c*op.H+h)*op.W+w] = float64(x[(c*op.H+sy)*op.W+sx])
				}
			}
		}
	}
}

func (r *reference) conv(op *compute.Conv2D, i int) {
	x, y := r.at(op.X, i), r.at(op.Y, i)
	for o := range op.O {
		for oy := range op.OutHeight {
			for ox := range op.OutWidth {
				s := r.bias(op.B, o)
				for c := range op.C {
					for ky := range op.K {
						for kx := range op.K {
							h, w := oy*op.Stride+ky-op.Pad, ox*op.Stride+kx-op.Pad
							if h >= 0 && h < op.H && w >= 0 && w < op.W {
								s += x[(c*op.H+h)*op.W+w] * r.params[op.Filter][((o*op.C+c)*op.K+ky)*op.K+kx]
							}
						}
					}
				}
				y[(o*op.OutHeight+oy)*op.OutWidth+ox] = s
			}
		}
	}
}

func (r *reference) pool(op *compute.Pool, i int) {
	x, y := r.at(op.X, i), r.at(op.Y, i)
	for c := range op.C {
		for oy := range op.OutHeight {
			for ox := range op.OutWidth {
				s, m := 0.0, math.Inf(-1)
				for ky := range op.K {
					for kx := range op.K {
						v := x[(c*op.H+oy*op.Stride+ky)*op.W+ox*op.Stride+kx]
						s, m = s+v, math.Max(m, v)
					}
				}
				if op.Avg {
					m = s / float64(op.K*op.K)
				}
				y[(c*op.OutHeight+oy)*op.OutWidth+ox] = m
			}
		}
	}
}

func (r *reference) norm(op *compute.BatchNorm) {
	for c := range op.C {
		var all []float64
		for i := range r.batch.N {
			all = append(all, r.at(op.X, i)[c*op.Area:(c+1)*op.Area]...)
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
		for i := range r.batch.N {
			for j := c * op.Area; j < (c+1)*op.Area; j++ {
				r.at(op.Y, i)[j] = (r.at(op.X, i)[j]-mean)/math.Sqrt(variance+op.Eps)*r.params[op.Gamma][c] + r.params[op.Beta][c]
			}
		}
	}
}
