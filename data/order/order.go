// Package order decides which examples form which step. It is pure: no clock,
// file, goroutine or hidden state.
//
// The idea: in a synchronous job the batch of step k is a function of the seed,
// the number of examples and the batch size alone, never of who computes it.
// Every epoch is a permutation of all examples, step k takes the next Batch of
// them, and each of w workers takes its contiguous [Slice] of that. So a job
// can go from w to w' workers between any two steps, or resume from a bare step
// number, and consume exactly what the unbroken run would have.
//
// The permutation is a small block cipher over the positions (a Feistel network
// with cycle walking), so that no list of examples is ever held: a worker that
// joins at step 10^9 of a set of 10^9 examples starts at once.
//
// Asynchronous workers have no common step; they lease chunks of an epoch's
// positions from a [Ledger]. A running text is read in order, by lanes: [Plan.Windows].
// Where a job is in all this, and must go on from, is its [Cursor].
//
// Nothing here says who fetches an example from storage: whoever uses it does, ahead
// of time, since all that is here can be foretold.
//
// Steps count from 1, since version k of the parameters is what step k made and
// version 0 is their initial state. Epochs, positions and ids count from 0.
package order

import (
	"errors"
	"fmt"
)

// ErrInvalid is in the chain of every error about a plan or ledger that cannot
// be: no examples, no batch, no chunk size.
var ErrInvalid = errors.New("invalid")

// Plan is the order of all examples for a whole job.
type Plan struct {
	Seed     uint64 `json:"seed"`
	Examples int    `json:"examples"` // N, examples of the training set
	Batch    int    `json:"batch"`    // M, examples of one step over all workers
}

// Validate refuses a plan without examples or batch. The methods of a plan
// that is not valid return zeros and empty batches.
func (p Plan) Validate() error {
	switch {
	case p.Examples <= 0:
		return fmt.Errorf("plan: %w: %d examples, want 1 or more; check that the data set is not empty", ErrInvalid, p.Examples)
	case p.Batch <= 0:
		return fmt.Errorf("plan: %w: batch of %d examples, want 1 or more; set --batch", ErrInvalid, p.Batch)
	}
	return nil
}

func (p Plan) valid() bool { return p.Examples > 0 && p.Batch > 0 }

// StepsPerEpoch returns ceil(N/M): the last batch of an epoch may be short.
func (p Plan) StepsPerEpoch() int64 {
	if !p.valid() {
		return 0
	}
	return int64((p.Examples-1)/p.Batch) + 1
}

// Epoch returns the epoch, from 0, that step (from 1) belongs to.
func (p Plan) Epoch(step int64) int {
	epoch, _, _ := p.Positions(step)
	return epoch
}

// Positions returns the epoch of a step and the range [lo, hi) of the epoch's
// positions that its batch takes; the range is empty only for a step below 1.
func (p Plan) Positions(step int64) (epoch, lo, hi int) {
	if !p.valid() || step < 1 {
		return 0, 0, 0
	}
	per := p.StepsPerEpoch()
	lo = int((step-1)%per) * p.Batch
	return int((step - 1) / per), lo, lo + min(p.Batch, p.Examples-lo)
}

// IDs returns the ids of a step's batch, in order. It overwrites dst and reuses
// its memory.
func (p Plan) IDs(step int64, dst []int) []int {
	epoch, lo, hi := p.Positions(step)
	return p.Range(epoch, lo, hi, dst)
}

// Range returns the ids at positions [lo, hi) of an epoch, cut to those that
// exist. It overwrites dst and reuses its memory.
func (p Plan) Range(epoch, lo, hi int, dst []int) []int {
	dst = dst[:0]
	perm := newPermutation(p.Seed, epoch, p.Examples)
	for i := max(lo, 0); i < min(hi, p.Examples); i++ {
		dst = append(dst, perm.at(i))
	}
	return dst
}

// Slice returns the part [lo, hi) of a batch of n examples that worker rank of
// workers computes. The parts are contiguous, in order of rank, cover the batch
// and differ in size by at most one; with fewer examples than workers the last
// workers get empty parts. A rank outside 0..workers-1 gets an empty part.
func Slice(n, rank, workers int) (lo, hi int) {
	if n <= 0 || rank < 0 || rank >= workers {
		return 0, 0
	}
	size, extra := n/workers, n%workers
	lo = rank*size + min(rank, extra)
	hi = lo + size
	if rank < extra {
		hi++
	}
	return lo, hi
}
