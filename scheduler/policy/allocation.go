package policy

import (
	"fmt"

	"optimus/scheduler/place"
)

// Allocation is what one job gets, {0, 0} if it has to wait, and why.
type Allocation struct {
	Tasks  place.Counts
	Reason string
}

// Allocator chooses the number of tasks of each job. The jobs come in their order, by submission, and can all run
// alone on the cluster; the result has one element for each.
type Allocator interface {
	Allocate(jobs []Job, cluster *place.Space) []Allocation
}

// pool is what is left of the whole cluster's capacity, whatever the node.
type pool struct {
	cluster *place.Space
	left    place.Vector
}

func newPool(cluster *place.Space) *pool {
	return &pool{cluster: cluster, left: cluster.Available()}
}

// take books c tasks of a job and reports false, booking nothing, if they do not fit.
func (p *pool) take(j *Job, c place.Counts) bool {
	for r, have := range p.left {
		if amount(j, c, r) > have {
			return false
		}
	}
	for r := range p.left {
		p.left[r] -= amount(j, c, r)
	}
	return true
}

// share returns the dominant share of c tasks of a job, and the amount that they take of the dominant resource.
func (p *pool) share(j *Job, c place.Counts) (share, units float64) {
	share, dominant := p.cluster.Share(func(r int) int64 { return amount(j, c, r) })
	return share, float64(amount(j, c, dominant))
}

func amount(j *Job, c place.Counts, r int) int64 {
	var sum int64
	for role, n := range c {
		if n > 0 {
			sum += int64(n) * j.Demand[role][r]
		}
	}
	return sum
}

// bundle returns one ps and one worker, or one worker of a job without ps.
func (j *Job) bundle() place.Counts {
	if j.Ring {
		return place.Counts{0, 1}
	}
	return place.Counts{1, 1}
}

func plus(a, b place.Counts) place.Counts { return place.Counts{a[0] + b[0], a[1] + b[1]} }

// floor gives every job its least number of tasks, in order, and passes over those that no longer fit.
func (p *pool) floor(jobs []Job) []Allocation {
	out := make([]Allocation, len(jobs))
	for i := range jobs {
		if least := jobs[i].least(); p.take(&jobs[i], least) {
			out[i] = Allocation{Tasks: least, Reason: "least number of tasks"}
		} else {
			out[i].Reason = fmt.Sprintf("waits: its least, %v, does not fit beside earlier jobs", least)
		}
	}
	return out
}
