package conv

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is the CPU time that the calling thread has used.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic("conv: the thread's CPU time cannot be read: " + err.Error()) // every Linux has it
	}
	return time.Duration(t.Nano())
}
