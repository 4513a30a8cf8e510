package reproduce

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"optimus/scheduler/estimate"
	"optimus/scheduler/sim/optimus"
	"optimus/scheduler/trace"
)

// fig6 is the paper's signed error of the predicted total epochs in %, at 10, 20, …, 100 % progress.
var fig6 = map[string][10]float64{
	"ResNext-110":  {-20, -14, -11, -7, -3, -1, 0, 0, 1, 0},
	"CNN-rand":     {19, 12, 9, 6, 3, 1, 0, -1, -1, 0},
	"DSSM":         {-26, -13, -8, -4, -4, 0, 0, 0, 0, 0},
	"RNN-LSTM":     {-24, -20, -16, -14, -11, -9, -7, -5, -4, 0},
	"Seq2Seq":      {-4, 2, 2, 2, 2, 2, 2, 2, 2, 0},
	"KAGGLE":       {-16, -15, -13, -10, -8, -6, -4, -3, -2, 0},
	"DeepSpeech2":  {-12, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	"ResNet-50":    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	"Inception-BN": {24, 18, 14, 12, 10, 8, 6, 6, 4, 0},
}

// fig5 is what Fig 5 shows at 0, 10 and 100 % progress.
var fig5 = map[string][3]float64{
	"ResNext-110": {.977, .630, .249}, "CNN-rand": {1, .506, .081}, "DSSM": {.989, .915, .817},
	"RNN-LSTM": {.941, .714, .460}, "Seq2Seq": {1, .435, .151}, "KAGGLE": {.934, .638, .192},
	"DeepSpeech2": {1, .862, .784}, "ResNet-50": {.999, .949, .876}, "Inception-BN": {1, .407, .059},
}

const lossSteps = 20 // losses in an epoch

// lossFigures are Figs 5 and 6.
func (r *report) lossFigures() error {
	five := figure{name: "fig5", title: "Fig 5: normalised training loss"}
	six := figure{name: "fig6", title: "Fig 6: error of the predicted total epochs, mean over the nine curves of the absolute error in %"}
	var curves []series
	perSeed := [10][]float64{}
	for at := range perSeed {
		perSeed[at] = make([]float64, r.Seeds)
	}
	var theirs [10]float64
	kinds := optimus.Kinds()
	for _, k := range kinds {
		c := series{name: k.Name}
		for e := 0.0; e <= 100; e++ {
			c.x, c.y = append(c.x, e), append(c.y, k.Loss(e))
		}
		curves = append(curves, c)
		for i, at := range []float64{0, 10, 100} {
			five.add(fmt.Sprintf("%s at %.0f %%", k.Name, at), fig5[k.Name][i], k.Loss(at))
		}
		for at, e := range fig6[k.Name] {
			theirs[at] += math.Abs(e) / float64(len(kinds))
		}
		for seed := range r.Seeds {
			errors, err := predict(k, uint64(seed))
			if err != nil {
				return err
			}
			for at, e := range errors {
				perSeed[at][seed] += math.Abs(e) / float64(len(kinds))
			}
		}
	}
	ours, paper := series{name: "ours"}, series{name: "paper", dash: true}
	for at := range perSeed {
		six.mean(fmt.Sprintf("at %d %% progress", 10*(at+1)), theirs[at], perSeed[at])
		ours.x, ours.y = append(ours.x, float64(10*(at+1))), append(ours.y, six.rows[at].ours)
		paper.x, paper.y = append(paper.x, float64(10*(at+1))), append(paper.y, theirs[at])
	}
	five.plot = lines(five.title, "progress, %", "loss", curves)
	six.plot = lines("Fig 6", "progress, %", "mean error, %", []series{ours, paper})
	return firstError(r.show(five), r.show(six))
}

// predict follows a job that converges after exactly 100 epochs, and returns the error of the predicted total in % at 10,
// 20, …, 100 % progress. Its losses have 2 % noise, and 1 % of them are half as large again.
func predict(k optimus.Kind, seed uint64) ([10]float64, error) {
	var out [10]float64
	rng := rand.New(rand.NewPCG(seed, 6))
	x := k.Beta[0]*(100-optimus.Patience) + k.Beta[1]
	c := estimate.Convergence{
		History:   estimate.History{EpochExamples: int64(lossSteps * k.Batch)},
		Threshold: k.Beta[0] / (x * (x + k.Beta[0])) / k.Loss(0),
		Patience:  optimus.Patience,
	}
	for step := range 100 * lossSteps {
		loss := k.Loss(float64(step)/lossSteps) * (1 + .02*rng.NormFloat64())
		if rng.Float64() < .01 {
			loss *= 1.5
		}
		p := estimate.LossPoint{Step: int64(step + 1), Examples: int64((step + 1) * k.Batch), Epoch: step / lossSteps,
			Loss: loss, Weight: float64(k.Batch), LearningRate: .1, M: k.Batch}
		if err := c.Add(p); err != nil {
			return out, err
		}
		if (step+1)%(10*lossSteps) == 0 {
			f, err := c.Forecast()
			if err != nil {
				return out, fmt.Errorf("prediction of Fig 6: %s: %w", k.Name, err)
			}
			out[(step+1)/(10*lossSteps)-1] = f.Total - 100
		}
	}
	return out, nil
}

// fig9Sync are the points of Fig 9 for synchronous training: p or w fixed, the other 2, 4, ….
var fig9Sync = []struct {
	p, w int
	f    []float64
}{
	{6, 0, []float64{.0398, .0593, .0698, .0685, .0632, .0637, .0606, .0501, .0488}},
	{12, 0, []float64{.0445, .0646, .0831, .0855, .0854, .0884, .0858, .0813, .0736}},
	{18, 0, []float64{.0419, .0710, .0872, .0940, .1012, .0993, .1000, .0963, .0920}},
	{0, 6, []float64{.0428, .0585, .0698, .0754, .0815, .0831, .0827, .0827, .0872}},
	{0, 12, []float64{.0250, .0458, .0637, .0722, .0835, .0884, .0913, .0935, .0993}},
	{0, 18, []float64{.0184, .0339, .0488, .0548, .0661, .0736, .0857, .0894, .0920}},
}

// fig9Batch is M of the synchronous job; the paper does not print it, its Fig 9 implies it.
const fig9Batch = 40

func fig9SyncProbes() []estimate.Probe {
	var out []estimate.Probe
	for _, line := range fig9Sync {
		for i, f := range line.f {
			c := estimate.Probe{Servers: line.p, Workers: line.w, Speed: f}
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

// speedFigures are Table 2 and Figs 4, 8 and 9.
func (r *report) speedFigures(tables []trace.SpeedTable) error {
	table2 := figure{name: "table2", title: "Table 2 and Fig 9: coefficients from the points of Fig 9 (the paper's are those of least squares in f, ours in relative errors)"}
	four := figure{name: "fig4", title: "Fig 4a: synchronous ResNet-50, w + p = 20, predicted from Fig 9's points, steps/s"}
	for _, c := range []struct {
		name   string
		form   estimate.Form
		probes []estimate.Probe
		theta  []float64
	}{
		{"async", estimate.Async(), optimus.Fig9(), []float64{2.83, 3.92, 0, .11}},
		{"sync", estimate.Sync(fig9Batch), fig9SyncProbes(), []float64{1.02, 2.78, 4.92, 0, .02}},
	} {
		fit, err := estimate.FitSpeed(c.form, c.probes)
		if err != nil {
			return err
		}
		for i, term := range c.form.Terms {
			table2.add(fmt.Sprintf("%s: coefficient of %s", c.name, term), c.theta[i], fit.Theta[i])
		}
		table2.add(c.name+": mean relative error, %", none, 100*meanError(fit, c.probes))
		if c.name == "sync" {
			best, most := 0, 0.0
			for i, f := range []float64{.0419, .0676, .0827, .0854, .0849, .0722, .0606, .0356, .0183} {
				w := 2 * (i + 1)
				ours, _ := fit.At(20-w, w)
				four.add(fmt.Sprintf("w = %d", w), f, ours)
				if ours > most {
					best, most = w, ours
				}
			}
			four.add("best w", 8, float64(best))
		}
	}
	if err := firstError(r.show(table2), r.show(four)); err != nil {
		return err
	}
	return r.fig8(tables)
}

func meanError(fit estimate.SpeedFit, probes []estimate.Probe) float64 {
	sum := 0.0
	for _, p := range probes {
		f, _ := fit.At(p.Servers, p.Workers)
		sum += math.Abs(f-p.Speed) / p.Speed
	}
	return sum / float64(len(probes))
}

// fig8 is the error of the estimated speed by the number of probes.
func (r *report) fig8(tables []trace.SpeedTable) error {
	i := slices.IndexFunc(tables, func(t trace.SpeedTable) bool { return t.Model == "resnet-50" })
	if i < 0 {
		return fmt.Errorf("probes of Fig 8: the table of speeds has no resnet-50")
	}
	f := figure{name: "fig8", title: "Fig 8: mean error of the speed of ResNet-50 by the number of probes, % (random as in the paper; designed is ours)"}
	var all []series
	for _, c := range []struct {
		name   string
		form   estimate.Form
		probes []estimate.Probe
		paper  []float64
	}{
		{"async, Fig 9's points", estimate.Async(), optimus.Fig9(), []float64{7.30, 6.92, 5.53, 4.99, 4.90, 4.86}},
		{"sync, Fig 9's points", estimate.Sync(fig9Batch), fig9SyncProbes(), []float64{5.80, 4.47, 4.35, 4.00, 3.83, 3.91}},
		{"sync, testbed table", estimate.Sync(tables[i].Batch), tables[i].Probes, nil},
	} {
		random, designed := series{name: c.name + ", random"}, series{name: c.name + ", designed"}
		for k := range 6 {
			n := 5 * (k + 1)
			paper := none
			if c.paper != nil {
				paper = c.paper[k]
			}
			e, err := randomProbing(c.form, c.probes, n, r.Seeds)
			if err != nil {
				return err
			}
			f.mean(fmt.Sprintf("%s, %d random", c.name, n), paper, e)
			random.x, random.y = append(random.x, float64(n)), append(random.y, f.rows[len(f.rows)-1].ours)
			d, err := designedProbing(c.form, c.probes, n)
			if err != nil {
				return err
			}
			f.add(fmt.Sprintf("%s, %d designed", c.name, n), paper, d)
			designed.x, designed.y = append(designed.x, float64(n)), append(designed.y, d)
		}
		all = append(all, random, designed)
	}
	f.plot = lines("Fig 8", "probes", "mean error, %", all)
	return r.show(f)
}

// randomProbing returns the error on all points in %, for each of some draws that determine the coefficients.
func randomProbing(form estimate.Form, all []estimate.Probe, n, draws int) ([]float64, error) {
	rng := rand.New(rand.NewPCG(8, uint64(n)))
	var out []float64
	for tries := 0; len(out) < draws; tries++ {
		if tries > 100*draws {
			return nil, fmt.Errorf("probes of Fig 8: %d random probes hardly ever determine %s", n, form.Name)
		}
		var draw []estimate.Probe
		for _, i := range rng.Perm(len(all))[:n] {
			draw = append(draw, all[i])
		}
		if fit, err := estimate.FitSpeed(form, draw); err == nil {
			out = append(out, 100*meanError(fit, all))
		}
	}
	return out, nil
}

// designedProbing returns the error on all points in %, of a fit to probes chosen by estimate.NextProbe.
func designedProbing(form estimate.Form, all []estimate.Probe, n int) (float64, error) {
	var design []estimate.Probe
	for range n {
		next, ok := estimate.NextProbe(form, design, all)
		if !ok {
			break
		}
		i := slices.IndexFunc(all, func(p estimate.Probe) bool { return p.Servers == next.Servers && p.Workers == next.Workers })
		design = append(design, all[i])
	}
	fit, err := estimate.FitSpeed(form, design)
	return 100 * meanError(fit, all), err
}
