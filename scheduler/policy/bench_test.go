package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"optimus/scheduler/place"
)

// fig12View is the set-up of Fig 12: jobs of the two kinds of Table 2 on equal nodes of 16 cores and 80 GB, tasks of
// 2 cores and 10 GB, so that 8 fit on a node.
func fig12View(jobs, nodes int) View {
	rng := rand.New(rand.NewPCG(12, uint64(jobs)))
	v := View{Nodes: make([]place.Node, nodes), Jobs: make([]Job, jobs)}
	for i := range v.Nodes {
		v.Nodes[i] = place.Node{ID: fmt.Sprintf("node-%05d", i), Capacity: place.Vector{16, 80}}
	}
	for i := range v.Jobs {
		f := table2Sync
		if rng.IntN(2) == 0 {
			f = table2Async
		}
		v.Jobs[i] = Job{ID: fmt.Sprintf("job-%05d", i), Submitted: float64(i), Demand: [2]place.Vector{{2, 10}, {2, 10}},
			Remaining: 1000 * (1 + 9*rng.Float64()), Speed: f}
	}
	return v
}

// BenchmarkFig12 is one round, allocation and placement, from an empty state: no job keeps its place. Divide ns/op
// by n log n of a row's tasks to see that the cost grows no faster.
func BenchmarkFig12(b *testing.B) {
	for _, name := range []string{"optimus", "optimus-paper"} {
		p, err := ByName(name)
		if err != nil {
			b.Fatal(err)
		}
		for _, size := range [][2]int{{1000, 1000}, {1000, 4000}, {2000, 8000}, {4000, 16000}, {8000, 32000}, {8000, 64000}} {
			b.Run(fmt.Sprintf("%s/%d jobs on %d nodes", name, size[0], size[1]), func(b *testing.B) {
				v := fig12View(size[0], size[1])
				tasks := 0
				for b.Loop() {
					_, decisions, err := Step(p, State{}, v)
					if err != nil {
						b.Fatal(err)
					}
					tasks = 0
					for _, d := range decisions {
						tasks += d.Tasks.Total()
					}
				}
				b.ReportMetric(float64(tasks)/float64(size[0]), "tasks/job")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tasks), "ns/task")
			})
		}
	}
}
