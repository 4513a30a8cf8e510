package cpu

import (
	"sync"
	"sync/atomic"
)

// pool runs the tasks of one pass on a fixed set of goroutines; the caller is one
// of them. It allocates nothing after newPool.
type pool struct {
	wake []chan struct{} // one per helper
	done sync.WaitGroup

	task  func(task, thread int)
	tasks int64
	next  atomic.Int64
}

// newPool starts threads-1 helpers.
func newPool(threads int) *pool {
	p := &pool{}
	for t := 1; t < threads; t++ {
		wake := make(chan struct{}, 1)
		p.wake = append(p.wake, wake)
		go func() {
			for range wake {
				p.work(t)
				p.done.Done()
			}
		}()
	}
	return p
}

// run calls task(0), …, task(tasks-1), each once, on whichever thread is free, and
// returns when all are done.
func (p *pool) run(tasks int, task func(task, thread int)) {
	if len(p.wake) == 0 || tasks < 2 {
		for i := range tasks {
			task(i, 0)
		}
		return
	}
	p.task, p.tasks = task, int64(tasks)
	p.next.Store(0)
	p.done.Add(len(p.wake))
	for _, wake := range p.wake {
		wake <- struct{}{}
	}
	p.work(0)
	p.done.Wait()
}

func (p *pool) work(thread int) {
	for {
		i := p.next.Add(1) - 1
		if i >= p.tasks {
			return
		}
		p.task(int(i), thread)
	}
}

// shares is into how many runs n things are split where neighbours are best done by
// one core, since they have much of what they read in common; share is one of them.
func (e *executable) shares(n int) int { return min(e.threads, n) }

func (e *executable) share(task, n int) (lo, hi int) {
	shares := e.shares(n)
	return task * n / shares, (task + 1) * n / shares
}

func (p *pool) close() {
	for _, wake := range p.wake {
		close(wake)
	}
	p.wake = nil
}
