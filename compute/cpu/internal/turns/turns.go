// Package turns compares the levels of a kernel on a machine that does other work as well: they take turns in one
// run, and each one's shortest time counts.
package turns

import (
	"testing"
	"time"

	"optimus/internal/level"
)

// Levels runs a function of n elements at all levels in turn and reports, for each level, nanoseconds for an
// element and how many times as fast as the Go code it is.
func Levels(b *testing.B, n int, run func(name string)) {
	levels := level.Present()
	best := make([]time.Duration, len(levels))
	for b.Loop() {
		for i, name := range levels {
			start := time.Now()
			run(name)
			if d := time.Since(start); best[i] == 0 || d < best[i] {
				best[i] = d
			}
		}
	}
	for i, name := range levels {
		b.ReportMetric(float64(best[i].Nanoseconds())/float64(n), name+"-ns/elem")
		if i > 0 {
			b.ReportMetric(float64(best[0])/float64(best[i]), name+"-x")
		}
	}
	b.ReportMetric(0, "ns/op")
}
