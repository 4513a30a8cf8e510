package policy

import (
	"container/heap"
	"fmt"

	"optimus/scheduler/place"
)

// Ring allocates GPUs by the doubling heuristic of "Dynamic Scheduling of MPI-based Distributed Deep Learning Training
// Jobs" (§3). Every job gets its least, in order of submission; then the job with the largest gain in remaining time per
// added GPU (Eqn 6) gets twice what it has, until no doubling fits or nobody gains. The paper's jobs have no ps; one that
// has some gets as many more of them as of workers.
//
// A step of one GPU would stop at 8 where 9 are slower, though 16 are faster: rings like powers of two, and the ninth
// GPU may be on another node. Doubling looks over that, but leaves GPUs idle that are too few for anybody's double.
//
// A batch per GPU is fixed: Job.Remaining and Job.Speed count the same examples whatever the number of GPUs.
type Ring struct {
	// Any considers every number of added GPUs that fits, not only as many as the job has. Doubling and steps of one
	// are special cases of it, and no GPU that somebody gains from stays idle.
	Any bool
}

// Allocate implements [Allocator].
func (r Ring) Allocate(jobs []Job, cluster *place.Space) []Allocation {
	pool := newPool(cluster)
	out := pool.floor(jobs)
	r.grow(jobs, pool, out)
	return out
}

// grow gives what is left in the pool to the jobs that have something.
func (r Ring) grow(jobs []Job, pool *pool, out []Allocation) {
	var q steps
	for i := range jobs {
		if out[i].Tasks != (place.Counts{}) {
			if s := r.best(&jobs[i], out[i].Tasks, pool); s.gain > 0 {
				s.job = i
				q = append(q, s)
			}
		}
	}
	heap.Init(&q)
	for len(q) > 0 {
		s := q[0]
		j, a := &jobs[s.job], &out[s.job]
		if pool.take(j, j.bundles(s.add)) { // else others took the room: look for a smaller step
			now := a.Tasks[place.Worker]
			a.Tasks = plus(a.Tasks, j.bundles(s.add))
			a.Reason = fmt.Sprintf("gain %.4g s per GPU, worker %d→%d", s.gain, now, now+s.add)
		}
		if q[0] = r.best(j, a.Tasks, pool); q[0].gain > 0 {
			q[0].job = s.job
			heap.Fix(&q, 0)
		} else {
			heap.Pop(&q)
		}
	}
}

// best returns the step with the largest gain per GPU among those that fit, or one without gain.
func (r Ring) best(j *Job, now place.Counts, pool *pool) step {
	var best step
	before, _ := j.seconds(now)
	add := now[place.Worker]
	if r.Any {
		add = 1
	}
	for {
		next := plus(now, j.bundles(add))
		if !j.bounded(next) || !pool.fits(j, j.bundles(add)) {
			return best
		}
		if t, ok := j.seconds(next); ok {
			if gain := (before - t) / float64(add); gain > best.gain {
				best = step{add: add, gain: gain}
			}
		}
		if add++; !r.Any {
			return best
		}
	}
}

// fits reports whether c tasks of a job are left.
func (p *pool) fits(j *Job, c place.Counts) bool {
	for r, have := range p.left {
		if amount(j, c, r) > have {
			return false
		}
	}
	return true
}

// step is a number of GPUs that a job could get, and what it gains in seconds for each of them.
type step struct {
	job, add int
	gain     float64
}

// steps is a heap, largest gain first.
type steps []step

func (q steps) Len() int { return len(q) }
func (q steps) Less(a, b int) bool {
	return q[a].gain > q[b].gain || q[a].gain == q[b].gain && q[a].job < q[b].job
}
func (q steps) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *steps) Push(x any)   { *q = append(*q, x.(step)) }
func (q *steps) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// Fixed gives every job the same number of GPUs, or its most if that is less, in order of submission; it stops at
// the first job that does not fit. These are the strategies One, Two, Four and Eight of the ring paper.
type Fixed struct{ GPUs int }

// Allocate implements [Allocator].
func (f Fixed) Allocate(jobs []Job, cluster *place.Space) []Allocation {
	pool, out := newPool(cluster), make([]Allocation, len(jobs))
	open := true
	for i := range jobs {
		j := &jobs[i]
		want := pool.upTo(j, f.GPUs)
		if open = open && pool.take(j, want); open {
			out[i] = Allocation{Tasks: want, Reason: fmt.Sprintf("%d GPUs, as every job", f.GPUs)}
		} else {
			out[i].Reason = "waits: the queue stops at the first job that does not fit"
		}
	}
	return out
}

// bundles returns n bundles.
func (j *Job) bundles(n int) place.Counts {
	b := j.bundle()
	return place.Counts{n * b[place.PS], n * b[place.Worker]}
}

// upTo returns n bundles of a job, or as many as come nearest to that within its bounds and on the whole cluster.
func (p *pool) upTo(j *Job, n int) place.Counts {
	c := j.least()
	for c[place.Worker] < n {
		next := plus(c, j.bundle())
		for r, have := range p.cluster.Capacity() {
			if amount(j, next, r) > have {
				return c
			}
		}
		if !j.bounded(next) {
			return c
		}
		c = next
	}
	return c
}

// Explore reserves eight GPUs for each new job and lets it run one round on each of one, two, four and eight of them,
// so that its speeds become known; then Then decides. This is the strategy Exploratory of the ring paper, whose rounds
// take 2.5 minutes.
type Explore struct {
	Then   Ring
	placed []place.Placement // where the jobs are now
}

const (
	explorerGPUs    = 8
	explorerChanges = 3 // 1→2→4→8
)

// exploring reports whether the job, which has so many tasks now, still explores. One that may have fewer than eight is
// through when it has run on all of them.
func (p *pool) exploring(j *Job, now place.Counts) bool {
	return j.Speed == nil || j.Restarts < explorerChanges && now != p.upTo(j, explorerGPUs)
}

// Allocate implements [Allocator]. How many GPUs a new job has tells how far its exploration has come.
func (e Explore) Allocate(jobs []Job, cluster *place.Space) []Allocation {
	pool, out := newPool(cluster), make([]Allocation, len(jobs))
	now := make([]place.Counts, len(jobs))
	var known []Job
	var index, explorers []int
	for i := range jobs {
		if i < len(e.placed) {
			now[i] = e.placed[i].Total()
		}
		if pool.exploring(&jobs[i], now[i]) {
			explorers = append(explorers, i)
		} else {
			known, index = append(known, jobs[i]), append(index, i)
		}
	}
	grown := pool.floor(known)
	for _, i := range explorers {
		j := &jobs[i]
		if !pool.take(j, pool.upTo(j, explorerGPUs)) {
			out[i].Reason = fmt.Sprintf("waits: no %d GPUs are free to explore its speed", explorerGPUs)
			continue
		}
		size := pool.upTo(j, min(explorerGPUs, max(1, 2*now[i][place.Worker])))
		out[i] = Allocation{Tasks: size, Reason: fmt.Sprintf("explores its speed with %v", size)}
	}
	e.Then.grow(known, pool, grown)
	for k, i := range index {
		out[i] = grown[k]
	}
	return out
}

// fewNodes is a planner that puts each job on few nodes, as it should be without ps.
type fewNodes struct{ TwoStage }

func onFewNodes(a Allocator) Planner {
	return fewNodes{TwoStage{Allocator: a, Place: place.MostFree{}, Keep: true, Shrink: true}}
}

// Check implements [Planner]: every job needs an estimate of its speed, but where that is what is to be found out.
func (p fewNodes) Check(j *Job) error {
	if _, ok := p.Allocator.(Explore); ok && j.Restarts < explorerChanges {
		return nil
	}
	return p.TwoStage.Check(j)
}

// Plan implements [Planner].
func (p fewNodes) Plan(r *Round) []Plan {
	t := p.TwoStage
	if e, ok := t.Allocator.(Explore); ok {
		e.placed = r.Placed
		t.Allocator = e
	}
	return t.Plan(r)
}
