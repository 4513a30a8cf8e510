package cpu

import (
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPoolRunsEachTaskOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		p := newPool(threads)
		for _, tasks := range []int{0, 1, 2, 3, 100} {
			counts := make([]atomic.Int32, tasks)
			p.run(tasks, func(task, thread int) {
				if thread < 0 || thread >= threads {
					t.Errorf("thread %d of %d", thread, threads)
				}
				counts[task].Add(1)
			})
			for i := range counts {
				if n := counts[i].Load(); n != 1 {
					t.Errorf("%d threads, %d tasks: task %d ran %d times", threads, tasks, i, n)
				}
			}
		}
		p.close()
	}
}
