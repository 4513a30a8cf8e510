package optimus

import "optimus/scheduler/estimate"

// fig9 is what Fig 9 shows of asynchronous ResNet-50, steps/s of all workers together: p or w is fixed, the other is
// 2, 4, ….
var fig9 = []struct {
	p, w int // 0 for the one that varies
	f    []float64
}{
	{6, 0, []float64{.3805, .6498, .8546, .9535, 1.084, 1.101, 1.1185, 1.104, 1.1283, 1.1175}},
	{12, 0, []float64{.4146, .6916, .9465, 1.1117, 1.2867, 1.5312, 1.6694, 1.800, 1.8535, 1.9134}},
	{18, 0, []float64{.4275, .7401, 1.0072, 1.2197, 1.4425, 1.6547, 1.851, 1.9234, 2.0974, 2.255}},
	{0, 6, []float64{.3956, .6735, .8546, .891, .9214, .9466, .9741, .9541, 1.0073, 1.0226}},
	{0, 12, []float64{.4166, .8011, 1.1011, 1.3343, 1.5015, 1.5313, 1.5325, 1.5773, 1.6548, 1.6853}},
	{0, 18, []float64{.4386, .7501, 1.1283, 1.3784, 1.7541, 1.8535, 1.9375, 1.9943, 2.0976, 2.0768}},
}

// fig9Compute is the time of a worker's computation in a step of Fig 9, in seconds: the constant that the paper prints
// for it (Table 2). It only divides what was measured into computation and transfer.
const fig9Compute = 2.83

// fig9Points returns the times of one worker's step, w/f.
func fig9Points() []point {
	var out []point
	for _, line := range fig9 {
		for i, f := range line.f {
			p, w := float64(line.p), float64(line.w)
			if line.p == 0 {
				p = float64(2 * (i + 1))
			} else {
				w = float64(2 * (i + 1))
			}
			out = append(out, point{p, w, w / f})
		}
	}
	return out
}

// Fig9 returns the points of Fig 9 for asynchronous training.
func Fig9() []estimate.Probe {
	var out []estimate.Probe
	for _, q := range fig9Points() {
		out = append(out, estimate.Probe{Servers: int(q.p), Workers: int(q.w), Speed: q.w / q.seconds})
	}
	return out
}
