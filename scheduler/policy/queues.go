package policy

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"optimus/scheduler/place"
)

// MaxBundles is the most bundles that fifo, srtf and tetris give to one job, so that the first does not take all.
const MaxBundles = 16

// FIFO gives bundles of one ps and one worker to jobs in order of submission, to each up to [MaxBundles], and stops
// at the first job that cannot even have its least.
type FIFO struct{}

// Allocate implements [Allocator].
func (FIFO) Allocate(jobs []Job, cluster *place.Space) []Allocation {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	return inOrder(jobs, cluster, order, "number %d by arrival")
}

// SRTF is FIFO in the order of the remaining time: that of the job with its least number of tasks.
type SRTF struct{}

// Allocate implements [Allocator].
func (SRTF) Allocate(jobs []Job, cluster *place.Space) []Allocation {
	order, times := make([]int, len(jobs)), make([]float64, len(jobs))
	for i := range order {
		order[i] = i
		times[i], _ = jobs[i].seconds(jobs[i].least())
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(times[a], times[b]) })
	return inOrder(jobs, cluster, order, "number %d by remaining time")
}

// inOrder serves jobs one after another.
func inOrder(jobs []Job, cluster *place.Space, order []int, why string) []Allocation {
	pool, out := newPool(cluster), make([]Allocation, len(jobs))
	open := true
	for n, i := range order {
		j := &jobs[i]
		if open = open && pool.take(j, j.least()); !open {
			out[i].Reason = "waits: the queue stops at the first job that does not fit; " + fmt.Sprintf(why, n+1)
			continue
		}
		out[i] = Allocation{Tasks: pool.bundles(j, j.least()), Reason: fmt.Sprintf(why, n+1)}
	}
	return out
}

// bundles adds bundles to c while they fit, up to [MaxBundles] workers.
func (p *pool) bundles(j *Job, c place.Counts) place.Counts {
	for c[place.Worker] < MaxBundles {
		next := plus(c, j.bundle())
		if !j.bounded(next) || !p.take(j, j.bundle()) {
			break
		}
		c = next
	}
	return c
}

// Tetris gives bundles one at a time to the job with the best score: the alignment of a bundle with what is free, less
// the job's remaining work, each relative to the mean over the jobs. Work is the share of the cluster that the job would
// then have times the time that it would then need, from Optimus's estimates. All jobs get their least first if it fits,
// then the best up to [MaxBundles], as long as that makes them faster.
//
// Tetris itself is for jobs whose tasks are given, and hands out again at once what a task leaves. Here a job that grows
// in vain has more work than before, and so it falls behind others; and one that ends before the next round with what it
// has comes after those that do not, since nobody could use before then what it leaves. The simulator of Optimus's author
// adds the work instead of subtracting it, which favours the longest jobs; Tetris itself favours the shortest.
type Tetris struct {
	Round float64 // seconds between two rounds
}

// Allocate implements [Allocator].
func (o Tetris) Allocate(jobs []Job, cluster *place.Space) []Allocation {
	t := tetris{round: o.Round, pool: newPool(cluster), jobs: jobs, align: make([]float64, len(jobs)), out: make([]Allocation, len(jobs))}
	work := make([]float64, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		for r, c := range t.pool.left {
			if c > 0 {
				t.align[i] += float64(amount(j, j.bundle(), r)) / float64(c)
			}
		}
		work[i] = t.work(i, j.least())
	}
	t.scale = mean(t.align) / math.Max(mean(work), math.SmallestNonzeroFloat64)
	t.floor()
	t.grow()
	return t.out
}

// tetris is one run of it.
type tetris struct {
	round float64
	pool  *pool
	jobs  []Job
	align []float64 // of each job's bundle
	scale float64   // of work to alignment
	out   []Allocation
}

// work is a job's remaining work with c tasks.
func (t *tetris) work(i int, c place.Counts) float64 {
	share, _ := t.pool.share(&t.jobs[i], c)
	seconds, _ := t.jobs[i].seconds(c)
	return share * seconds
}

func (t *tetris) score(i int, c place.Counts) float64 { return t.align[i] - t.scale*t.work(i, c) }

// floor gives the jobs their least, by score.
func (t *tetris) floor() {
	order, score := make([]int, len(t.jobs)), make([]float64, len(t.jobs))
	for i := range order {
		order[i], score[i] = i, t.score(i, t.jobs[i].least())
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	for _, i := range order {
		if j := &t.jobs[i]; t.pool.take(j, j.least()) {
			t.out[i] = Allocation{Tasks: j.least(), Reason: t.reason(i, score[i])}
		} else {
			t.out[i].Reason = "waits: its least does not fit beside jobs with a higher score"
		}
	}
}

// grow gives what is left to those that have something, first to those that do not end in this round.
func (t *tetris) grow() {
	var longer, ending steps
	for i, a := range t.out {
		if a.Tasks == (place.Counts{}) {
			continue
		}
		if s, ok := t.next(i); ok && t.ends(i) {
			ending = append(ending, s)
		} else if ok {
			longer = append(longer, s)
		}
	}
	heap.Init(&longer)
	for len(longer) > 0 {
		s := heap.Pop(&longer).(step)
		if next, ok := t.give(s); ok && t.ends(s.job) {
			ending = append(ending, next)
		} else if ok {
			heap.Push(&longer, next)
		}
	}
	heap.Init(&ending)
	for len(ending) > 0 {
		if next, ok := t.give(heap.Pop(&ending).(step)); ok {
			heap.Push(&ending, next)
		}
	}
}

// ends reports whether the job ends in this round with what it has.
func (t *tetris) ends(i int) bool {
	seconds, _ := t.jobs[i].seconds(t.out[i].Tasks)
	return seconds <= t.round
}

// give makes a step, and returns the next of that job, if it got this one and wants another.
func (t *tetris) give(s step) (step, bool) {
	j, a := &t.jobs[s.job], &t.out[s.job]
	if !t.pool.take(j, j.bundle()) {
		return step{}, false
	}
	*a = Allocation{Tasks: plus(a.Tasks, j.bundle()), Reason: t.reason(s.job, s.gain)}
	return t.next(s.job)
}

// next is the job's next bundle with its score, false if it has had its last.
func (t *tetris) next(i int) (step, bool) {
	j, now := &t.jobs[i], t.out[i].Tasks
	next := plus(now, j.bundle())
	before, _ := j.seconds(now)
	after, ok := j.seconds(next)
	return step{job: i, gain: t.score(i, next)}, ok && after < before && now[place.Worker] < MaxBundles && j.bounded(next)
}

func (t *tetris) reason(i int, score float64) string {
	return fmt.Sprintf("score %.3g: alignment %.3g less work %.3g", score, t.align[i], (t.align[i]-score)/t.scale)
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(1, len(x)))
}
