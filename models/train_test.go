package models_test

import (
	"slices"
	"testing"

	"optimus/compute"
	"optimus/compute/cpu"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/internal/rng"
	"optimus/models"
)

// trainer trains a workload in one place, as one server and one worker would: it
// owns the parameters, and speaks to the executable only as a worker does.
type trainer struct {
	t      testing.TB
	w      models.Workload
	set    *data.Set
	p      *compute.Program
	e      compute.Executable
	params [][]float32
	state  [][][]float32 // per block, per slot of the optimizer
	aux    [][]float32
	seed   uint64
	steps  int64
	excess float64 // of the step at hand: optim.Update

	fetched data.Batch
	batch   compute.Batch
}

func newTrainer(t testing.TB, w models.Workload, set *data.Set, seed uint64) *trainer {
	t.Helper()
	p, err := w.Program(set)
	if err != nil {
		t.Fatal(err)
	}
	e, err := cpu.Compile(p, max(100, w.Batch))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	tr := &trainer{t: t, w: w, set: set, p: p, e: e, seed: seed}
	for b, param := range p.Params {
		v := make([]float32, param.Size())
		param.Init.Fill(seed, b, 0, v)
		tr.params = append(tr.params, v)
		var slots [][]float32
		for range w.Optimizer.Slots() {
			slots = append(slots, make([]float32, len(v)))
		}
		tr.state = append(tr.state, slots)
	}
	for i, a := range p.Aux {
		v := make([]float32, a.Size())
		a.Init.Fill(seed, len(p.Params)+i, 0, v)
		tr.aux = append(tr.aux, v)
	}
	return tr
}

// load reads examples and sets what the executable needs for them.
func (tr *trainer) load(split data.Split, ids []int) {
	tr.t.Helper()
	if err := split.Fill(ids, &tr.fetched); err != nil {
		tr.t.Fatal(err)
	}
	models.Convert(&tr.batch, &tr.fetched)
	for b, param := range tr.p.Params {
		if !param.Rows {
			tr.e.SetParam(b, 0, tr.params[b])
			continue
		}
		rows, err := tr.e.Rows(b, &tr.batch)
		if err != nil {
			tr.t.Fatal(err)
		}
		for _, row := range rows {
			w := param.RowSize()
			tr.e.SetRow(b, int(row), 0, tr.params[b][int(row)*w:int(row+1)*w])
		}
	}
}

// step trains on examples and updates parameters and running statistics.
func (tr *trainer) step(epoch int, ids []int) compute.Result {
	tr.t.Helper()
	tr.load(tr.set.Train, ids)
	result, err := tr.e.Train(&tr.batch, compute.Key{Seed: tr.seed, Epoch: epoch, Examples: ids}, compute.Hooks{})
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.steps++
	tr.excess = tr.clip(result.Weight)
	for b, param := range tr.p.Params {
		g := tr.e.Grad(b)
		if !param.Rows {
			tr.apply(b, 0, g.Dense, result.Weight)
			continue
		}
		for i, row := range g.Rows {
			w := param.RowSize()
			tr.apply(b, int(row)*w, g.Values[i*w:(i+1)*w], result.Weight)
		}
	}
	for i, a := range tr.aux {
		m := float32(tr.p.AuxMomentum)
		for j, sum := range tr.e.AuxSum(i) {
			a[j] = m*a[j] + (1-m)*sum/float32(result.Weight)
		}
	}
	return result
}

// clip returns what a bound on the norm makes of the gradient.
func (tr *trainer) clip(weight int64) float64 {
	var sum optim.Squares
	if bound := tr.w.Optimizer.ClipNorm; bound > 0 {
		for b := range tr.p.Params {
			g := tr.e.Grad(b)
			sum.Add(g.Dense, weight, bound)
			sum.Add(g.Values, weight, bound)
		}
	}
	return sum.Excess()
}

func (tr *trainer) apply(block, offset int, g []float32, weight int64) {
	tr.t.Helper()
	v := tr.params[block][offset : offset+len(g)]
	var state [][]float32
	for _, s := range tr.state[block] {
		state = append(state, s[offset:offset+len(g)])
	}
	err := tr.w.Optimizer.Apply(optim.Update{T: tr.steps, LR: tr.w.Optimizer.Rate(tr.steps), Decay: !tr.p.Params[block].NoDecay,
		Params: v, Out: v, State: state, StateOut: state, Grad: g, Weight: weight, Excess: tr.excess})
	if err != nil {
		tr.t.Fatal(err)
	}
}

// epoch trains on every example once, in an order of its own.
func (tr *trainer) epoch(epoch int) (total compute.Result) {
	ids := make([]int, tr.set.Train.Len())
	key := rng.NewKey(tr.seed, 17, uint64(epoch))
	for i := range ids {
		ids[i] = i
	}
	for i := len(ids) - 1; i > 0; i-- {
		j := key.Intn(uint64(i), i+1)
		ids[i], ids[j] = ids[j], ids[i]
	}
	for share := range slices.Chunk(ids, tr.w.Batch) {
		total.Add(tr.step(epoch, share))
	}
	return total
}

// evaluate returns the result on the whole validation split.
func (tr *trainer) evaluate() (total compute.Result) {
	tr.t.Helper()
	for i, a := range tr.aux {
		tr.e.SetAux(i, 0, a)
	}
	ids := make([]int, tr.set.Valid.Len())
	for i := range ids {
		ids[i] = i
	}
	for share := range slices.Chunk(ids, 100) {
		tr.load(tr.set.Valid, share)
		r, err := tr.e.Evaluate(&tr.batch)
		if err != nil {
			tr.t.Fatal(err)
		}
		total.Add(r)
	}
	return total
}

// reach trains for at most epochs and fails unless the validation metric gets to
// goal.
func (tr *trainer) reach(goal float64, epochs int) {
	tr.t.Helper()
	best := 0.0
	for epoch := range epochs {
		trained, valid := tr.epoch(epoch), tr.evaluate()
		tr.t.Logf("epoch %d: loss %.4f, accuracy %.3f; validation loss %.4f, accuracy %.3f", epoch, trained.Mean(), accuracy(trained), valid.Mean(), accuracy(valid))
		if best = max(best, accuracy(valid)); best >= goal {
			return
		}
	}
	tr.t.Errorf("validation accuracy %.3f after %d epochs, want %.3f", best, epochs, goal)
}

func accuracy(r compute.Result) float64 { return compute.Accuracy.Figures(r)[0].Value }
