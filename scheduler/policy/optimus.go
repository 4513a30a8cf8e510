package policy

import (
	"fmt"

	"optimus/scheduler/place"
)

// Options are where Optimus deviates from its paper. The zero value is the paper (§4.1): gains per amount of the
// added task's dominant resource, one task at a time, and an end at the first task that does not fit.
type Options struct {
	// Share divides gains by the share of the cluster that a task takes of its dominant resource, not by the
	// amount: cores of one job and GPUs of another are no common unit.
	Share bool
	// Continue goes on, when a task does not fit, with tasks that do: ps need no GPU.
	Continue bool
	// Joint also tries a ps and a worker together, where neither alone is a gain. It takes capacity early, so that
	// without Exchange a job may be left short that would have gained more later.
	Joint bool
	// Exchange improves the greedy result: it moves a task from one job to another, or replaces a task by one of
	// the other role, as long as that shortens the sum of the remaining times.
	Exchange bool
	// Young multiplies the gain of jobs whose progress is below YoungUntil; the paper tries 0.95 and uses 1. A
	// value of 0 is 1.
	Young, YoungUntil float64
}

// Best returns the options that are on in the policy "optimus".
func Best() Options { return Options{Share: true, Continue: true, Joint: true, Exchange: true} }

// Optimus allocates by marginal gains. It is not work-conserving: a task that makes no job faster stays away.
type Optimus struct{ Options Options }

// Allocate implements [Allocator].
func (o Optimus) Allocate(jobs []Job, cluster *place.Space) []Allocation {
	g := o.newGreedy(jobs, cluster)
	g.run()
	if o.Options.Exchange {
		g.exchange()
	}
	for i := range g.grow {
		if w := &g.grow[i]; w.running() {
			g.out[i] = Allocation{Tasks: w.tasks, Reason: g.reason(w)}
		}
	}
	return g.out
}

// moves are what greedy may add at once; ps first, which wins ties. The last is Options.Joint's.
var moves = [3]place.Counts{{1, 0}, {0, 1}, {1, 1}}

// growing is a job that may still get tasks.
type growing struct {
	job     *Job
	tasks   place.Counts
	seconds float64    // t at tasks
	price   [3]float64 // of each move: share of the cluster, or amount of the dominant resource
	blocked [3]bool    // the move does not fit any more, or is never allowed

	best      int     // index of the best move, −1 for none
	gain      float64 // its gain per price
	reach     float64 // t after it
	lastGain  float64
	lastMove  int          // −1 before the first
	exchanged bool         // the last change was an exchange
	from      place.Counts // tasks before it
}

func (w *growing) running() bool { return w.tasks != place.Counts{} }

// greedy is one run of the allocation.
type greedy struct {
	opt  Options
	pool *pool
	out  []Allocation
	grow []growing // one per job
	heap []int32   // indices of grow, best gain first
}

func (o Optimus) newGreedy(jobs []Job, cluster *place.Space) *greedy {
	g := &greedy{opt: o.Options, pool: newPool(cluster), grow: make([]growing, len(jobs))}
	g.out = g.pool.floor(jobs)
	for i := range jobs {
		w := &g.grow[i]
		w.job, w.tasks, w.lastMove, w.best = &jobs[i], g.out[i].Tasks, -1, -1
		if !w.running() {
			continue
		}
		w.seconds, _ = w.job.seconds(w.tasks)
		for m, add := range moves {
			if w.job.Ring && add[place.PS] > 0 {
				w.blocked[m] = true
				continue
			}
			share, units := g.pool.share(w.job, add)
			w.price[m] = units
			if g.opt.Share {
				w.price[m] = share
			}
		}
		if g.look(w); w.best >= 0 {
			g.heap = append(g.heap, int32(i))
		}
	}
	return g
}

// run gives out tasks until nothing fits or nobody gains.
func (g *greedy) run() {
	for at := len(g.heap)/2 - 1; at >= 0; at-- {
		g.down(at)
	}
	for len(g.heap) > 0 {
		w := &g.grow[g.heap[0]]
		if g.pool.take(w.job, moves[w.best]) {
			w.tasks = plus(w.tasks, moves[w.best])
			w.seconds, w.lastGain, w.lastMove = w.reach, w.gain, w.best
		} else if g.opt.Continue {
			w.blocked[w.best] = true // what is left only shrinks
		} else {
			return
		}
		if g.look(w); w.best < 0 {
			g.heap[0] = g.heap[len(g.heap)-1]
			g.heap = g.heap[:len(g.heap)-1]
		}
		g.down(0)
	}
}

// look finds the job's best move: the larger term of Eqn 9, if it is positive.
func (g *greedy) look(w *growing) {
	w.best, w.gain = -1, 0
	for m := range moves {
		if m == 2 && (!g.opt.Joint || w.best >= 0) {
			break
		}
		if gain, t, ok := g.gain(w, m); ok && gain > w.gain {
			w.best, w.gain, w.reach = m, gain, t
		}
	}
}

// gain returns [Q/f(p,w) − Q/f(p',w')] ÷ price of a move, and Q/f(p',w'); a move whose speed is not known is none.
func (g *greedy) gain(w *growing, m int) (gain, t float64, ok bool) {
	next := plus(w.tasks, moves[m])
	if w.blocked[m] || !w.job.bounded(next) {
		return 0, 0, false
	}
	if t, ok = w.job.seconds(next); !ok {
		return 0, 0, false
	}
	gain = (w.seconds - t) / w.price[m]
	if g.opt.Young > 0 && w.job.Progress < g.opt.YoungUntil {
		gain *= g.opt.Young
	}
	return gain, t, true
}

// above orders the heap: larger gain, then the earlier job.
func (g *greedy) above(a, b int32) bool {
	if x, y := g.grow[a].gain, g.grow[b].gain; x != y {
		return x > y
	}
	return a < b
}

func (g *greedy) down(at int) {
	for {
		best := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(g.heap); child++ {
			if g.above(g.heap[child], g.heap[best]) {
				best = child
			}
		}
		if best == at {
			return
		}
		g.heap[at], g.heap[best] = g.heap[best], g.heap[at]
		at = best
	}
}

// reason tells the last step of a job's growth and why it ended there.
func (g *greedy) reason(w *growing) string {
	unit := "unit"
	if g.opt.Share {
		unit = "share"
	}
	why := "no gain from one more task"
	if w.best >= 0 {
		why = fmt.Sprintf("the next would gain %.4g s per %s", w.gain, unit)
	}
	for m, add := range moves {
		if next := plus(w.tasks, add); m < 2 && w.job.bounded(next) {
			if t, ok := w.job.seconds(next); !ok {
				why = fmt.Sprintf("speed f(%d,%d) is not known", next[place.PS], next[place.Worker])
			} else if w.blocked[m] && t < w.seconds {
				why = "no room for more"
			}
		}
	}
	if w.exchanged {
		return fmt.Sprintf("exchange from %v: %.4g s sooner, in favour of the sum", w.from, w.lastGain)
	}
	if w.lastMove < 0 {
		return "least number of tasks; " + why
	}
	return fmt.Sprintf("gain %.4g s per %s, %s; %s", w.lastGain, unit, change(moves[w.lastMove], w.tasks), why)
}

// change describes the tasks added last, for example "worker 4→5".
func change(add, now place.Counts) string {
	switch add {
	case place.Counts{1, 0}:
		return fmt.Sprintf("ps %d→%d", now[place.PS]-1, now[place.PS])
	case place.Counts{0, 1}:
		return fmt.Sprintf("worker %d→%d", now[place.Worker]-1, now[place.Worker])
	}
	return fmt.Sprintf("ps %d→%d, worker %d→%d", now[place.PS]-1, now[place.PS], now[place.Worker]-1, now[place.Worker])
}
