package elastic

import (
	"testing"
	"time"
)

// People read seconds where the length of a tick is known.
func TestSpan(t *testing.T) {
	for tick, want := range map[time.Duration]string{0: "101 ticks", 100 * time.Millisecond: "10.1 s", time.Second: "101.0 s"} {
		c := &Controller{cfg: Config{Tick: tick}}
		if got := c.span(101); got != want {
			t.Errorf("101 ticks of %v are %q, want %q", tick, got, want)
		}
	}
}
