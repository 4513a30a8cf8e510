package data

import (
	"slices"
	"sync"
)

// Evaluation takes the place of an epoch's number for the validation set.
const Evaluation = -1

// Prefetch fills the batches of a set, and those that are likely to be asked for next
// ahead of time, on a goroutine beside the caller's. So examples are read and decoded
// while a model trains on those before.
//
// Which examples come next is a guess: a pure function of the job's plan until the
// number of workers changes, or of a lease until it is lost. [Prefetch.Ahead] takes the guess, [Prefetch.Batch] says
// what is wanted; a guess that is not that is dropped, never used. So what Batch
// returns does not depend on guesses, nor on the number of goroutines.
//
// One caller may use it at a time. There is no goroutine while nothing is to be filled
// ahead, and memory for the batch that the caller has, for depth others, and for one
// that was dropped while it was filled.
type Prefetch struct {
	set   *Set
	depth int

	mu      sync.Mutex
	guesses []*filled // in the order in which they are filled and asked for
	running bool
	group   sync.WaitGroup
	current *filled // what the caller has
	free    []*Batch
	closed  bool
}

// filled is a batch of certain examples.
type filled struct {
	epoch   int
	ids     []int
	batch   *Batch
	err     error
	begun   bool
	dropped bool
	done    chan struct{} // closed when it is filled
}

func (f *filled) is(epoch int, ids []int) bool { return f.epoch == epoch && slices.Equal(f.ids, ids) }

// NewPrefetch makes one that fills at most depth batches ahead; 0 means none.
func NewPrefetch(s *Set, depth int) *Prefetch { return &Prefetch{set: s, depth: depth} }

// Ahead says which examples may be asked for behind those of the last Batch and of the
// guesses since, in which epoch, and begins to fill their batch. It reports false, and does nothing,
// while depth guesses are waiting to be asked for; it never blocks.
func (p *Prefetch) Ahead(epoch int, ids []int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.find(epoch, ids) >= 0 {
		return true
	}
	if p.closed || len(p.guesses) >= p.depth {
		return false
	}
	p.guesses = append(p.guesses, &filled{epoch: epoch, ids: slices.Clone(ids), done: make(chan struct{})})
	if !p.running {
		p.running = true
		p.group.Go(p.run)
	}
	return true
}

// find returns the place of a guess, or -1.
func (p *Prefetch) find(epoch int, ids []int) int {
	return slices.IndexFunc(p.guesses, func(f *filled) bool { return f.is(epoch, ids) })
}

// run fills guesses until there is none.
func (p *Prefetch) run() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		i := slices.IndexFunc(p.guesses, func(f *filled) bool { return !f.begun })
		if i < 0 {
			p.running = false
			return
		}
		f := p.guesses[i]
		f.begun, f.batch = true, p.memory()
		p.mu.Unlock()
		p.fill(f)
		p.mu.Lock()
		close(f.done)
		if f.dropped {
			p.free = append(p.free, f.batch)
		}
	}
}

// memory takes a batch to fill.
func (p *Prefetch) memory() *Batch {
	n := len(p.free)
	if n == 0 {
		return &Batch{}
	}
	b := p.free[n-1]
	p.free = p.free[:n-1]
	return b
}

// fill needs no lock.
func (p *Prefetch) fill(f *filled) {
	split := p.set.Valid
	if f.epoch != Evaluation {
		split = InEpoch(p.set.Train, f.epoch)
	}
	f.err = split.Fill(f.ids, f.batch)
}

// Batch returns the batch of examples of the training set in an epoch, or of the
// validation set. It is the caller's until the next call; the same examples once more
// give the same batch without work. The error is that of [Split].Fill.
//
// Guesses that were to come before these examples are dropped, and all of them if none
// was right; but an evaluation, which comes between two steps, drops none.
func (p *Prefetch) Batch(epoch int, ids []int) (*Batch, error) {
	p.mu.Lock()
	if p.current != nil && p.current.is(epoch, ids) {
		defer p.mu.Unlock()
		return p.current.batch, nil
	}
	if p.current != nil {
		p.free = append(p.free, p.current.batch)
		p.current = nil
	}
	f, ahead := p.choose(epoch, ids)
	p.mu.Unlock()
	if ahead {
		<-f.done
	} else {
		p.fill(f)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.err != nil {
		p.free = append(p.free, f.batch)
		return nil, f.err
	}
	p.current = f
	return f.batch, nil
}

// choose returns a guess that is or will be filled, or a batch that the caller must
// fill.
func (p *Prefetch) choose(epoch int, ids []int) (f *filled, ahead bool) {
	i := p.find(epoch, ids)
	switch {
	case i >= 0:
		f = p.guesses[i]
		p.drop(i)
		p.guesses = p.guesses[1:]
		if f.begun {
			return f, true
		}
	case epoch != Evaluation:
		p.drop(len(p.guesses))
	}
	return &filled{epoch: epoch, ids: slices.Clone(ids), batch: p.memory()}, false
}

// drop gives up the first n guesses.
func (p *Prefetch) drop(n int) {
	for _, f := range p.guesses[:n] {
		f.dropped = true
		select {
		case <-f.done:
			p.free = append(p.free, f.batch)
		default: // if it was begun, run keeps the memory
		}
	}
	p.guesses = p.guesses[n:]
}

// Close drops all guesses and waits for the one that is being filled. Then there is no
// goroutine, and Ahead takes no more.
func (p *Prefetch) Close() {
	p.mu.Lock()
	p.closed = true
	p.drop(len(p.guesses))
	p.mu.Unlock()
	p.group.Wait()
}
