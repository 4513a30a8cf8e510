package estimate

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// fig5 are the nine loss curves of Fig 5: k in epochs of a job that converges
// after 100.
var fig5 = []struct {
	job  string
	b    [3]float64
	fig6 [10]float64 // signed error in % at 10, 20, …, 100 % progress
}{
	{"ResNext-110", [3]float64{.0868, 1.2061, .1477}, [10]float64{-20, -14, -11, -7, -3, -1, 0, 0, 1, 0}},
	{"CNN-rand", [3]float64{.1166, .8088, .0001}, [10]float64{19, 12, 9, 6, 3, 1, 0, -1, -1, 0}},
	{"DSSM", [3]float64{.2887, 4.9722, .7877}, [10]float64{-26, -13, -8, -4, -4, 0, 0, 0, 0, 0}},
	{"RNN-LSTM", [3]float64{.1288, 1.8233, .3922}, [10]float64{-24, -20, -16, -14, -11, -9, -7, -5, -4, 0}},
	{"Seq2Seq", [3]float64{.1885, 1.1117, .1009}, [10]float64{-4, 2, 2, 2, 2, 2, 2, 2, 2, 0}},
	{"KAGGLE", [3]float64{.0555, 1.1210, .0421}, [10]float64{-16, -15, -13, -10, -8, -6, -4, -3, -2, 0}},
	{"DeepSpeech2", [3]float64{.5989, 4.6673, .7684}, [10]float64{-12, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"ResNet-50", [3]float64{.3555, 6.8353, .8528}, [10]float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
	{"Inception-BN", [3]float64{.1610, .8484, .0001}, [10]float64{24, 18, 14, 12, 10, 8, 6, 6, 4, 0}},
}

const (
	epochSteps = 20
	stepBatch  = 64
)

// noisy is one step of a curve of Fig 5: clipped at 1 as drawn, 2 % noise, 1 % of
// the steps × 1.5.
func noisy(rng *rand.Rand, b [3]float64, step int) LossPoint {
	k := float64(step) / epochSteps
	loss := min(1, 1/(b[0]*k+b[1])+b[2]) * (1 + .02*rng.NormFloat64())
	if rng.Float64() < .01 {
		loss *= 1.5
	}
	return LossPoint{Step: int64(step + 1), Examples: int64(step+1) * stepBatch, Epoch: step / epochSteps, Loss: loss, Weight: stepBatch, LearningRate: .1, M: stepBatch}
}

// thresholdFor returns the δ with which the noise-free curve, divided by its
// largest loss, converges after exactly total epochs.
func thresholdFor(b [3]float64, total, patience float64) float64 {
	x := b[0]*(total-patience) + b[1]
	return b[0] / (x * (x + b[0])) / min(1, 1/b[1]+b[2])
}

func TestConvergencePaper(t *testing.T) {
	t.Run("Fig 6: error of the predicted total epochs", func(t *testing.T) {
		const seeds = 20
		var paper, ours [10]float64
		covered, stated := 0, 0
		for _, job := range fig5 {
			var row, signed [10]float64
			for seed := range uint64(seeds) {
				rng := rand.New(rand.NewPCG(seed, 6))
				c := Convergence{History: History{EpochExamples: epochSteps * stepBatch}, Threshold: thresholdFor(job.b, 100, 3)}
				for step := range 100 * epochSteps {
					if err := c.Add(noisy(rng, job.b, step)); err != nil {
						t.Fatal(err)
					}
					if (step+1)%(10*epochSteps) != 0 {
						continue
					}
					at := (step+1)/(10*epochSteps) - 1
					f, err := c.Forecast()
					if err != nil {
						t.Fatal(err)
					}
					row[at] += math.Abs(f.Total-100) / seeds
					signed[at] += (f.Total - 100) / seeds
					if at >= 2 && at <= 8 {
						stated++
						if f.Low <= 100 && 100 <= f.High {
							covered++
						}
					}
				}
			}
			for i := range row {
				ours[i] += row[i] / float64(len(fig5))
				paper[i] += math.Abs(job.fig6[i]) / float64(len(fig5))
			}
			t.Logf("%-13s |err| %6.2f  signed %6.2f", job.job, row, signed)
		}
		coverage := float64(covered) / float64(stated)
		t.Logf("%-13s %6.2f", "paper", paper)
		t.Logf("%-13s %6.2f   coverage of the 90 %% interval %.3f", "ours", ours, coverage)
		for i := 2; i <= 8; i++ {
			if ours[i] > paper[i] {
				t.Errorf("at %d %%: mean error %.2f %%, the paper has %.2f %%", 10*(i+1), ours[i], paper[i])
			}
		}
		if ours[2] > 5 || ours[7] > 2 {
			t.Errorf("mean error %.2f %% at 30 %% (bar 5), %.2f %% at 80 %% (bar 2)", ours[2], ours[7])
		}
		if coverage < .80 || coverage > .98 {
			t.Errorf("the 90 %% interval covers the truth in %.1f %% of the cases", 100*coverage)
		}
	})
}

// Fig 9, asynchronous and synchronous ResNet-50: p or w fixed, the other one 2, 4, ….
var fig9 = []struct {
	async bool
	p, w  int // the fixed one; the other is 0
	f     []float64
}{
	{true, 6, 0, []float64{.3805, .6498, .8546, .9535, 1.084, 1.101, 1.1185, 1.104, 1.1283, 1.1175}},
	{true, 12, 0, []float64{.4146, .6916, .9465, 1.1117, 1.2867, 1.5312, 1.6694, 1.800, 1.8535, 1.9134}},
	{true, 18, 0, []float64{.4275, .7401, 1.0072, 1.2197, 1.4425, 1.6547, 1.851, 1.9234, 2.0974, 2.255}},
	{true, 0, 6, []float64{.3956, .6735, .8546, .891, .9214, .9466, .9741, .9541, 1.0073, 1.0226}},
	{true, 0, 12, []float64{.4166, .8011, 1.1011, 1.3343, 1.5015, 1.5313, 1.5325, 1.5773, 1.6548, 1.6853}},
	{true, 0, 18, []float64{.4386, .7501, 1.1283, 1.3784, 1.7541, 1.8535, 1.9375, 1.9943, 2.0976, 2.0768}},
	{false, 6, 0, []float64{.0398, .0593, .0698, .0685, .0632, .0637, .0606, .0501, .0488}},
	{false, 12, 0, []float64{.0445, .0646, .0831, .0855, .0854, .0884, .0858, .0813, .0736}},
	{false, 18, 0, []float64{.0419, .0710, .0872, .0940, .1012, .0993, .1000, .0963, .0920}},
	{false, 0, 6, []float64{.0428, .0585, .0698, .0754, .0815, .0831, .0827, .0827, .0872}},
	{false, 0, 12, []float64{.0250, .0458, .0637, .0722, .0835, .0884, .0913, .0935, .0993}},
	{false, 0, 18, []float64{.0184, .0339, .0488, .0548, .0661, .0736, .0857, .0894, .0920}},
}

func fig9Points(async bool) []Probe {
	var out []Probe
	for _, line := range fig9 {
		if line.async != async {
			continue
		}
		for i, f := range line.f {
			c := Probe{line.p, line.w, f}
			if line.p == 0 {
				c.Servers = 2 * (i + 1)
			} else {
				c.Workers = 2 * (i + 1)
			}
			out = append(out, c)
		}
	}
	return out
}

func TestSpeedPaper(t *testing.T) {
	t.Run("Fig 9: NNLS on the measured points, relative weights", func(t *testing.T) {
		for _, c := range []struct {
			form  Form
			async bool
			theta []float64
			tol   float64 // relative to max(1, θ); the synchronous points have three digits only
			mean  float64 // % as printed, to 0.1
		}{
			{Async(), true, []float64{2.9097, 3.9561, 0, .0961}, 1e-3, 3.7},
			{Sync(40), false, []float64{1.0228, 1.6985, 5.4232, .0109, .0673}, 1e-2, 2.5},
		} {
			points := fig9Points(c.async)
			fit, err := FitSpeed(c.form, points)
			if err != nil {
				t.Fatal(err)
			}
			if len(fit.Rejected) > 0 {
				t.Errorf("%s: rejected %+v", c.form.Name, fit.Rejected)
			}
			for j, want := range c.theta {
				if math.Abs(fit.Theta[j]-want) > c.tol*max(1, want) {
					t.Errorf("%s: θ = %.4f, want %v", c.form.Name, fit.Theta, c.theta)
					break
				}
			}
			if e := 100 * meanError(fit, points, nil); math.Abs(e-c.mean) > .06 {
				t.Errorf("%s: mean error %.2f %%, want %.1f %%", c.form.Name, e, c.mean)
			}
		}
	})
	t.Run("Table 2: coefficients from five designed probes", func(t *testing.T) {
		for _, c := range []struct {
			form  Form
			theta []float64
		}{{Async(), []float64{2.83, 3.92, 0, .11}}, {Sync(40), []float64{1.02, 2.78, 4.92, 0, .02}}} {
			all := truth(c.form, c.theta, grid(40)...)
			if len(all) != 780 {
				t.Fatalf("%d configurations of 40 containers, the paper counts 780", len(all))
			}
			var design []Probe
			for range 5 {
				next, _ := NextProbe(c.form, design, all)
				design = append(design, measured([]Probe{next}, all)...)
			}
			fit, err := FitSpeed(c.form, design)
			if err != nil {
				t.Fatal(err)
			}
			for j, want := range c.theta {
				if math.Abs(fit.Theta[j]-want) > 1e-6 {
					t.Errorf("%s: θ = %v, want %v", c.form.Name, fit.Theta, c.theta)
				}
			}
		}
	})
	t.Run("Fig 8: error at 10 probes, testbed of six models", func(t *testing.T) {
		for _, m := range testbed(t) {
			form := Sync(m.batch)
			all, err := FitSpeed(form, m.rows)
			if err != nil {
				t.Fatal(err)
			}
			base := meanError(all, m.rows, nil)
			probes := designed(t, form, m.rows, 10)
			fit, err := FitSpeed(form, probes)
			if err != nil {
				t.Fatal(err)
			}
			ours, random := meanError(fit, m.rows, probes), randomProbing(form, m.rows)
			t.Logf("%-24s all rows %.2f %% | designed %5.2f %% = %.2f × | random %5.2f %% = %.2f ×", m.name, 100*base, 100*ours, ours/base, 100*random, random/base)
			if ours > 1.35*base || ours >= random {
				t.Errorf("%s: designed probes have %.2f × the error of all rows (bar 1.35), random ones %.2f ×", m.name, ours/base, random/base)
			}
			var diagonal []Probe
			for _, r := range m.rows {
				if r.Servers == r.Workers {
					diagonal = append(diagonal, r)
				}
			}
			var rank *RankError
			if _, err := FitSpeed(form, diagonal); !errors.As(err, &rank) || rank.Rank != 3 {
				t.Errorf("%s: p = w only: %v, want rank 3 of 5", m.name, err)
			}
		}
	})
	t.Run("Eqn 4 refined: 10-fold cross-validation", func(t *testing.T) {
		mean := 0.0
		models := testbed(t)
		for _, m := range models {
			plain, refined := crossValidate(t, FitSpeed, Sync(m.batch), m.rows), crossValidate(t, Refine, Sync(m.batch), m.rows)
			t.Logf("%-24s Eqn 4 %5.2f %% | refined %5.2f %% = %.2f ×", m.name, 100*plain, 100*refined, refined/plain)
			if refined >= plain {
				t.Errorf("%s: refined %.4f, Eqn 4 alone %.4f", m.name, refined, plain)
			}
			mean += refined / plain / float64(len(models))
		}
		t.Logf("mean %.2f ×", mean)
		if mean > .8 {
			t.Errorf("mean ratio %.2f, bar 0.80", mean)
		}
	})
}

// randomProbing is the mean error over 100 draws of 10 successful random probes.
func randomProbing(form Form, rows []Probe) float64 {
	rng := rand.New(rand.NewPCG(1, 8))
	sum := 0.0
	for n := 0; n < 100; {
		var draw []Probe
		for _, i := range rng.Perm(len(rows)) {
			if rows[i].Speed > 0 && len(draw) < 10 {
				draw = append(draw, rows[i])
			}
		}
		fit, err := FitSpeed(form, draw)
		if err != nil {
			continue // this draw does not determine the coefficients
		}
		sum += meanError(fit, rows, draw)
		n++
	}
	return sum / 100
}

func crossValidate(t *testing.T, fitter func(Form, []Probe) (SpeedFit, error), form Form, rows []Probe) float64 {
	perm := rand.New(rand.NewPCG(1, 10)).Perm(len(rows))
	sum, n := 0.0, 0.0
	for fold := range 10 {
		var train, test []Probe
		for k, i := range perm {
			if k%10 != fold {
				train = append(train, rows[i])
			} else if rows[i].Speed > 0 {
				test = append(test, rows[i])
			}
		}
		fit, err := fitter(form, train)
		if err != nil {
			t.Fatal(err)
		}
		sum += meanError(fit, test, nil) * float64(len(test))
		n += float64(len(test))
	}
	return sum / n
}
