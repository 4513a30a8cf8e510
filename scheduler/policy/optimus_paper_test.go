package policy

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/scheduler/place"
)

// Table 2 of the paper, ResNet-50, with M = 40, which the paper does not print but its Fig 9 implies.
var (
	table2Sync  = syncSpeed(40, [5]float64{1.02, 2.78, 4.92, 0, 0.02})
	table2Async = asyncSpeed([4]float64{2.83, 3.92, 0, 0.11})
)

// containers returns a cluster of so many containers of one task each.
func containers(t *testing.T, n int) *place.Space {
	t.Helper()
	s, err := place.NewSpace([]place.Node{{ID: "containers", Capacity: place.Vector{int64(n)}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func containerJob(id string, steps float64, f Speed) Job {
	return Job{ID: id, Demand: [2]place.Vector{{1}, {1}}, Remaining: steps, Speed: f}
}

func TestSection4_1(t *testing.T) {
	for _, c := range []struct {
		capacity int
		mode     string
		f        Speed
		want     place.Counts
		speed    float64
	}{
		{6, "sync", table2Sync, place.Counts{3, 3}, .04682},
		{10, "sync", table2Sync, place.Counts{5, 5}, .06266},
		{20, "sync", table2Sync, place.Counts{12, 8}, .08772},
		{30, "sync", table2Sync, place.Counts{19, 11}, .10291},
		{40, "sync", table2Sync, place.Counts{27, 13}, .11328},
		{100, "sync", table2Sync, place.Counts{75, 25}, .13242},
		{400, "sync", table2Sync, place.Counts{78, 25}, .13247},
		{6, "async", table2Async, place.Counts{3, 3}, .42373},
		{10, "async", table2Async, place.Counts{5, 5}, .68493},
		{20, "async", table2Async, place.Counts{9, 11}, 1.27742},
		{40, "async", table2Async, place.Counts{17, 23}, 2.29919},
		{100, "async", table2Async, place.Counts{35, 65}, 4.65616},
	} {
		t.Run(fmt.Sprintf("Table 2, one job, %s, %d containers", c.mode, c.capacity), func(t *testing.T) {
			jobs := []Job{containerJob("a", 1000, c.f)}
			got := Optimus{}.Allocate(jobs, containers(t, c.capacity))[0].Tasks
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if f := c.f.StepsPerSecond(got[0], got[1]); math.Abs(f-c.speed) > 5e-6 {
				t.Errorf("speed %.6f, want %.5f", f, c.speed)
			}
		})
	}
	for _, c := range []struct {
		mode, want string
		f          Speed
	}{{"sync", "wpwpwppwpp", table2Sync}, {"async", "pwpwpwpww", table2Async}} {
		t.Run("Eqn 9, first moves, "+c.mode, func(t *testing.T) {
			got, last := "", place.Counts{1, 1}
			for n := 3; n < 3+len(c.want); n++ {
				now := Optimus{}.Allocate([]Job{containerJob("a", 1000, c.f)}, containers(t, n))[0].Tasks
				got += map[place.Counts]string{{1, 0}: "p", {0, 1}: "w"}[place.Counts{now[0] - last[0], now[1] - last[1]}]
				last = now
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		name  string
		jobs  []Job
		tasks []place.Counts
		t     []float64
	}{
		{"A sync 1000, B sync 200", []Job{containerJob("a", 1000, table2Sync), containerJob("b", 200, table2Sync)},
			[]place.Counts{{8, 6}, {3, 3}}, []float64{13430.0, 4272.0}},
		{"A sync 1000, B async 3000", []Job{containerJob("a", 1000, table2Sync), containerJob("b", 3000, table2Async)},
			[]place.Counts{{7, 5}, {4, 4}}, []float64{14594.3, 5392.5}},
		{"two equal sync 1000", []Job{containerJob("a", 1000, table2Sync), containerJob("b", 1000, table2Sync)},
			[]place.Counts{{5, 5}, {5, 5}}, []float64{15960.0, 15960.0}},
	} {
		t.Run("Eqns 5 to 9, two jobs, 20 containers, "+c.name, func(t *testing.T) {
			out := Optimus{}.Allocate(c.jobs, containers(t, 20))
			for i := range c.jobs {
				sec, _ := c.jobs[i].seconds(out[i].Tasks)
				if out[i].Tasks != c.tasks[i] || math.Abs(sec-c.t[i]) > .05 {
					t.Errorf("job %d: %v, %.1f s, want %v, %.1f s", i, out[i].Tasks, sec, c.tasks[i], c.t[i])
				}
			}
		})
	}
	t.Run("priority factor of young jobs", func(t *testing.T) {
		jobs := []Job{containerJob("a", 1000, table2Sync), containerJob("b", 1000, table2Sync)}
		jobs[0].Progress, jobs[1].Progress = 0.05, 0.5
		out := Optimus{Options{Young: 0.5, YoungUntil: 0.1}}.Allocate(jobs, containers(t, 20))
		if young, old := out[0].Tasks.Total(), out[1].Tasks.Total(); young >= old || young+old != 20 {
			t.Errorf("the young job has %d tasks, the other %d; want fewer for the young one, 20 in all", young, old)
		}
	})
	t.Run("a resource used up ends the paper's rule, not ours", func(t *testing.T) {
		s, err := place.NewSpace([]place.Node{{ID: "n", Capacity: place.Vector{40, 2}}}) // cores, GPUs
		if err != nil {
			t.Fatal(err)
		}
		job := containerJob("a", 1000, table2Sync)
		job.Demand = [2]place.Vector{{1, 0}, {1, 1}}
		paper := Optimus{}.Allocate([]Job{job}, s)[0].Tasks
		ours := Optimus{Options{Continue: true}}.Allocate([]Job{job}, s)[0].Tasks
		if paper[place.Worker] != 2 || ours[place.Worker] != 2 || ours[place.PS] <= paper[place.PS] {
			t.Errorf("paper %v, continue %v; want 2 workers each and more ps with continue", paper, ours)
		}
	})
	t.Run("a joint move leaves a plateau", func(t *testing.T) {
		f := SpeedFunc(func(p, w int) float64 { return float64(min(p, w)) })
		if got := (Optimus{}).Allocate([]Job{containerJob("a", 100, f)}, containers(t, 10))[0].Tasks; got != (place.Counts{1, 1}) {
			t.Errorf("paper: got %v, want to stall at 1 + 1", got)
		}
		if got := (Optimus{Options{Joint: true}}).Allocate([]Job{containerJob("a", 100, f)}, containers(t, 10))[0].Tasks; got != (place.Counts{5, 5}) {
			t.Errorf("joint: got %v, want 5 + 5", got)
		}
	})
	t.Run("reason", func(t *testing.T) {
		out := Optimus{Options{Share: true}}.Allocate([]Job{containerJob("a", 1000, table2Sync)}, containers(t, 6))
		want := "gain 1.464e+04 s per share, ps 2→3; the next would gain 1.056e+04 s per share"
		if diff := cmp.Diff(want, out[0].Reason); diff != "" {
			t.Error(diff)
		}
	})
}
