// Package worker is the training loop of one worker: it asks its protocol
// machine (elastic.WorkerMember) what to do next, computes it with a Model, and
// exchanges parameters and gradients through an Exchanger.
//
// The loop knows neither servers nor networks nor data formats. A Model turns
// example ids into sums of gradients; an Exchanger brings versions and takes
// gradients. Whatever interrupts a step (a lost server, a veto, a transition)
// cancels it and the machine says what comes next. In modes asp and ssp a push
// that has begun is finished first: see [elastic.WorkerMember.Pushing].
package worker

import (
	"context"

	"optimus/compute"
	"optimus/elastic"
)

// Model computes sums of gradients over examples. One instance belongs to one
// worker and is driven by one goroutine. Blocks count from 0 in model order.
type Model interface {
	// Rows returns the distinct rows, ascending, of a block that is pulled by
	// rows, which the examples need in an epoch. It is not called for dense blocks.
	Rows(block, epoch int, ids []int, training bool) ([]int32, error)
	// SetParam, SetRow and SetAux take what was pulled.
	elastic.Sink
	// Train computes loss and gradients, as sums over the examples.
	Train(seed uint64, epoch int, ids []int) (compute.Result, error)
	// Evaluate computes loss and metric over validation examples.
	Evaluate(ids []int) (compute.Result, error)
	// Grad returns a block's gradient of the last Train.
	Grad(block int) compute.Grad
	// AuxSum returns an auxiliary array's statistic of the last Train, times
	// the weight.
	AuxSum(i int) []float32
	// Close frees what the model holds.
	Close()
}

// Foreteller is a Model that is told before a step what the step behind it will
// probably train on, so that it can read these examples meanwhile. It may be told wrong:
// what counts are the examples of the call of Train.
type Foreteller interface {
	Next(epoch int, ids []int)
}

// Dense gives a Model without rows and auxiliary arrays the methods it lacks,
// by embedding.
type Dense struct{}

// Rows, SetRow, SetAux, AuxSum and Close have nothing to do for such a model.
func (Dense) Rows(int, int, []int, bool) ([]int32, error) { return nil, nil }
func (Dense) SetRow(int, int, int, []float32)             {}
func (Dense) SetAux(int, int, []float32)                  {}
func (Dense) AuxSum(int) []float32                        { return nil }
func (Dense) Close()                                      {}

// Exchanger brings parameters to a worker and takes its gradients. Both calls
// retry until they succeed, the context ends, or the other side says that the
// generation is over (elastic.ErrRefresh); their errors name whom they waited for.
type Exchanger interface {
	// Pull hands every dense block, the auxiliary arrays if aux is set, and the
	// given rows of the row blocks to the model. It returns the largest
	// staleness that the servers have seen (ssp).
	Pull(ctx context.Context, from *elastic.Generation, at elastic.Stamp, rows map[int][]int32, aux bool, into elastic.Sink) (int64, error)
	// Push gives every block's gradient to its owners and returns once all have
	// acknowledged it.
	Push(ctx context.Context, to *elastic.Generation, at elastic.Stamp, grads []elastic.Gradient, weight int64) error
}
