package policy

import (
	"cmp"
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

// Tetris serves the jobs in the order of their scores: the alignment of a job's bundle with what is free, less its
// remaining work, each relative to the mean over the jobs. Work is the bundle's share of the cluster times the
// remaining time, from Optimus's estimates. All jobs get their least first if it fits, then the best up to
// [MaxBundles].
//
// The simulator of Optimus's author adds the work instead of subtracting it, which favours the longest jobs; Tetris
// itself favours the shortest.
type Tetris struct{}

// Allocate implements [Allocator].
func (Tetris) Allocate(jobs []Job, cluster *place.Space) []Allocation {
	pool, out := newPool(cluster), make([]Allocation, len(jobs))
	align, work := make([]float64, len(jobs)), make([]float64, len(jobs))
	order := make([]int, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		order[i] = i
		for r, c := range pool.left {
			if c > 0 {
				align[i] += float64(amount(j, j.bundle(), r)) / float64(c)
			}
		}
		share, _ := pool.share(j, j.bundle())
		t, _ := j.seconds(j.least())
		work[i] = share * t
	}
	scale := mean(align) / math.Max(mean(work), math.SmallestNonzeroFloat64)
	score := func(i int) float64 { return align[i] - scale*work[i] }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score(b), score(a)) })
	for _, i := range order {
		if j := &jobs[i]; pool.take(j, j.least()) {
			out[i] = Allocation{Tasks: j.least(), Reason: fmt.Sprintf("score %.3g: alignment %.3g, work %.3g", score(i), align[i], work[i])}
		} else {
			out[i].Reason = "waits: its least does not fit beside jobs with a higher score"
		}
	}
	for _, i := range order {
		if out[i].Tasks != (place.Counts{}) {
			out[i].Tasks = pool.bundles(&jobs[i], out[i].Tasks)
		}
	}
	return out
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(1, len(x)))
}
