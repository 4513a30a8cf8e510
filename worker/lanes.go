package worker

import (
	"fmt"
	"iter"

	"optimus/compute"
	"optimus/data/order"
	"optimus/elastic"
)

// Carrier is a Model of running text, whose state behind one window of words is that with
// which it begins the next. Which state goes with which example is not its business: it
// has one row of them for each example of a batch.
type Carrier interface {
	Model
	// Begin gives the states, [n,Carried], with which the next Train or Evaluate, of n
	// examples, begins; where it is not called they are zeros. The values are copied.
	Begin(states []float32)
	// State returns the states, [n,Carried], behind the last Train or Evaluate. They
	// are valid until the next.
	State() []float32
}

// lanes is a Carrier that carries the states of a running text from step to step; see
// [order.Plan.Windows]. The servers keep them, as the last auxiliary array,
// [Batch,Carried]: who has a lane pulls its state and pushes the next one, which replaces
// it. So states outlive workers, are taken back with a step, and are saved with the
// parameters.
type lanes struct {
	Carrier
	plan   order.Plan
	width  int
	aux    int       // place of the array among the auxiliary ones
	states []float32 // [Batch,Carried], as pulled
	push   []float32 // [Batch,Carried], zero but for the lanes of this worker
	lo     int       // the first of those
	step   int64     // that is trained
}

func newLanes(cfg *Config) (*lanes, error) {
	if cfg.Carried == 0 {
		return nil, nil
	}
	c, ok := cfg.Model.(Carrier)
	if !ok || cfg.Aux < 1 || cfg.Mode != elastic.BSP {
		return nil, fmt.Errorf("%s: a state of %d values is to be carried in mode %s: it takes common steps, an auxiliary array (%d), and a model that is a worker.Carrier (%T)",
			cfg.Self, cfg.Carried, cfg.Mode, cfg.Aux, cfg.Model)
	}
	n := cfg.Plan.Batch * cfg.Carried
	return &lanes{Carrier: c, plan: cfg.Plan, width: cfg.Carried, aux: cfg.Aux - 1, states: make([]float32, n), push: make([]float32, n)}, nil
}

// share returns the windows that worker rank of workers reads in a step.
func (l *lanes) share(step int64, rank, workers int, dst []int) []int {
	lo, hi := order.Slice(l.plan.Batch, rank, workers)
	return l.plan.Windows(step, lo, hi, dst)
}

// take makes a step's lanes those of worker rank of workers.
func (l *lanes) take(step int64, rank, workers int) {
	l.step = step
	l.lo, _ = order.Slice(l.plan.Batch, rank, workers)
}

// SetAux takes the states of all lanes, and hands other arrays on.
func (l *lanes) SetAux(i, offset int, v []float32) {
	if i == l.aux {
		copy(l.states[offset:], v)
		return
	}
	l.Carrier.SetAux(i, offset, v)
}

// AuxSum returns what the servers replace the states with.
func (l *lanes) AuxSum(i int) []float32 {
	if i == l.aux {
		return l.push
	}
	return l.Carrier.AuxSum(i)
}

// Train begins each window with the state behind the last one of its lane. Lanes that
// have no window are the last.
func (l *lanes) Train(seed uint64, epoch int, ids []int) (compute.Result, error) {
	if !l.plan.Begins(l.step) {
		l.Begin(l.states[l.lo*l.width : (l.lo+len(ids))*l.width])
	}
	r, err := l.Carrier.Train(seed, epoch, ids)
	if err == nil {
		clear(l.push)
		copy(l.push[l.lo*l.width:(l.lo+len(ids))*l.width], l.State())
	}
	return r, err
}

// Next hands on what is foretold.
func (l *lanes) Next(epoch int, ids []int) {
	if m, ok := l.Carrier.(Foreteller); ok {
		m.Next(epoch, ids)
	}
}

// assessments yields the batches in which worker rank of workers evaluates n windows, in
// as many lanes as are trained. So what comes out does not depend on the workers.
func (l *lanes) assessments(n, rank, workers int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		text := order.Plan{Examples: n, Batch: l.plan.Batch}
		lo, hi := order.Slice(text.Batch, rank, workers)
		var ids []int
		for step := int64(1); step <= text.StepsPerEpoch(); step++ {
			if ids = text.Windows(step, lo, hi, ids); len(ids) == 0 {
				return
			}
			if step > 1 {
				l.Begin(l.State()[:len(ids)*l.width])
			}
			if !yield(ids) {
				return
			}
		}
	}
}
