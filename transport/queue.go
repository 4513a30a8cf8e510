package transport

import "sync"

// queue is an unbounded first-in-first-out queue with two ends that close
// separately: what was put before the putting end closed can still be taken.
type queue[T any] struct {
	mu     sync.Mutex
	ready  sync.Cond
	items  []T
	noPut  bool // the putting end closed
	noTake bool // the taking end closed
}

func newQueue[T any]() *queue[T] {
	q := &queue[T]{}
	q.ready.L = &q.mu
	return q
}

// put appends v. It never blocks.
func (q *queue[T]) put(v T) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.noPut {
		return ErrClosed
	}
	if q.noTake {
		return ErrPeerClosed
	}
	q.items = append(q.items, v)
	q.ready.Signal()
	return nil
}

// take removes the oldest item, waiting for one.
func (q *queue[T]) take() (v T, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.noTake {
			return v, ErrClosed
		}
		if len(q.items) > 0 {
			var zero T
			v, q.items[0] = q.items[0], zero
			q.items = q.items[1:]
			return v, nil
		}
		if q.noPut {
			return v, ErrPeerClosed
		}
		q.ready.Wait()
	}
}

// closePut ends putting.
func (q *queue[T]) closePut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.noPut = true
	q.ready.Broadcast()
}

// closeTake ends taking and returns what nobody will take any more.
func (q *queue[T]) closeTake() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.items
	q.noTake, q.items = true, nil
	q.ready.Broadcast()
	return left
}
