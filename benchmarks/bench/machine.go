package main

import (
	"os"
	"runtime"
	"strings"
	"time"

	"optimus/benchmarks/step"
	"optimus/compute/cpu/sgemm"
	"optimus/internal/level"
)

// host is where and when the figures were measured.
type host struct {
	Processor  string    `json:"processor"`
	Cores      int       `json:"cores"`
	Level      string    `json:"level"` // of our kernels
	Go         string    `json:"go"`
	System     string    `json:"system"`
	Time       time.Time `json:"time"`
	LoadBefore float64   `json:"load_before"` // average of a minute
	LoadAfter  float64   `json:"load_after"`
}

func machine() host {
	name, err := level.Current()
	if err != nil {
		name = "unknown"
	}
	return host{
		Processor: processor(), Cores: runtime.NumCPU(), Level: name, Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Time: time.Now().UTC().Truncate(time.Second), LoadBefore: load(),
	}
}

// quiet reports whether nothing but the measurement wanted the processor when it began.
func (h host) quiet() bool { return h.LoadBefore < 0.3 }

// processor is its name as the system tells it.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// peak measures what one core can do at most, in GFLOP/s: the best of some loops of
// independent multiply-adds, of milliseconds each. It is 0 if our kernels have no such
// loop here.
func peak() (float64, error) {
	kn, err := sgemm.Current()
	if err != nil {
		return 0, err
	}
	const steps, loops = 1_000_000, 5
	best := 0.0
	for range loops {
		begin, err := step.CPUTime()
		if err != nil {
			return 0, err
		}
		flop := float64(kn.Peak(steps)) // of all
		end, err := step.CPUTime()
		if err != nil {
			return 0, err
		}
		if end > begin {
			best = max(best, flop/float64(end-begin))
		}
	}
	return best, nil
}
