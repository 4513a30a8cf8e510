package step

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Turn is how long some steps took together.
type Turn struct {
	Steps     int
	CPU, Wall time.Duration // of all threads of the process; of the clock
}

// Turn runs n steps.
func (s *Step) Turn(n int) (Turn, error) {
	t := Turn{Steps: n}
	cpu, err := CPUTime()
	if err != nil {
		return t, err
	}
	begin := time.Now()
	for range n {
		if err := s.Run(); err != nil {
			return t, err
		}
	}
	t.Wall = time.Since(begin)
	end, err := CPUTime()
	t.CPU = end - cpu
	return t, err
}

// CPUTime is the processor time that the process has used.
func CPUTime() (time.Duration, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0, err
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

// heap is the size of all live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
