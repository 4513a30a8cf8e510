package policy

import (
	"container/heap"
	"fmt"

	"optimus/scheduler/place"
)

// DRF is dominant resource fairness by progressive filling: the next bundle, one ps and one worker, goes to the job
// whose dominant share is least (ties: the earlier job). A job whose next bundle does not fit is full; the others go
// on. It is work-conserving: it knows nothing of speeds.
type DRF struct{}

// Allocate implements [Allocator].
func (DRF) Allocate(jobs []Job, cluster *place.Space) []Allocation {
	pool := newPool(cluster)
	out := pool.floor(jobs)
	var q shares
	for i := range jobs {
		if out[i].Tasks != (place.Counts{}) {
			share, _ := pool.share(&jobs[i], out[i].Tasks)
			q = append(q, fairShare{i, share})
		}
	}
	heap.Init(&q)
	for len(q) > 0 {
		i := q[0].job
		j := &jobs[i]
		next := plus(out[i].Tasks, j.bundle())
		if !j.bounded(next) || !pool.take(j, j.bundle()) {
			heap.Pop(&q)
			continue
		}
		out[i].Tasks = next
		q[0].share, _ = pool.share(j, next)
		out[i].Reason = fmt.Sprintf("fair share: %.3g of its dominant resource", q[0].share)
		heap.Fix(&q, 0)
	}
	return out
}

type fairShare struct {
	job   int
	share float64
}

// shares is a heap, least share first.
type shares []fairShare

func (q shares) Len() int { return len(q) }
func (q shares) Less(a, b int) bool {
	return q[a].share < q[b].share || q[a].share == q[b].share && q[a].job < q[b].job
}
func (q shares) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *shares) Push(x any)   { *q = append(*q, x.(fairShare)) }
func (q *shares) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
