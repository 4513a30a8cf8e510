package estimate

import (
	"fmt"
)

// Record is what was measured of one configuration of a job.
type Record struct {
	Nodes  int     `json:"nodes"`   // N
	GPUs   int     `json:"gpus"`    // K
	PerGPU int     `json:"per_gpu"` // m, examples
	Grad   float64 `json:"grad"`    // s: mean time of a pass, T_grad
	Last   float64 `json:"last"`    // s: mean time of the pass that ends with the exchange and the update
}

// RejectedRecord is a record that a fit left out.
type RejectedRecord struct {
	Index  int // in the records given
	Record Record
	Reason string
}

// fault says why a record is no measurement, "" if it is one.
func (r Record) fault() string {
	switch {
	case r.Nodes < 1 || r.GPUs < r.Nodes:
		return fmt.Sprintf("%d GPUs on %d nodes", r.GPUs, r.Nodes)
	case r.PerGPU < 1:
		return fmt.Sprintf("%d examples per GPU", r.PerGPU)
	case !duration(r.Grad):
		return fmt.Sprintf("a pass of %v s", r.Grad)
	case !duration(r.Last):
		return fmt.Sprintf("a last pass of %v s", r.Last)
	}
	return ""
}

// duration tells whether a pass may take so many seconds; it is false for NaN.
func duration(seconds float64) bool { return seconds >= tiny && seconds <= 1e8 }

// Profile collects the times of a job's passes and keeps one record for each (N, K, m) (Pollux, §4.1): a plain value
// that can be stored.
type Profile struct {
	Sums []ProfileSum `json:"sums"` // in the order of the first measurement
}

// ProfileSum is what Profile keeps of one configuration.
type ProfileSum struct {
	Nodes   int     `json:"nodes"`
	GPUs    int     `json:"gpus"`
	PerGPU  int     `json:"per_gpu"`
	Passes  int     `json:"passes"`  // that ended with an exchange or not
	Updates int     `json:"updates"` // passes that ended with an exchange
	Grad    float64 `json:"grad"`    // s: of all passes, exchanges left out
	Last    float64 `json:"last"`    // s: of all passes that ended with an exchange, with it
}

// Add takes one iteration: its passes without an exchange took grad seconds each, the last one took last seconds, sync
// of them after its own gradients were complete; grad means nothing without such passes. What is no measurement gives an
// error and is not taken. The first iteration after a start measures warming up and should not be added.
func (p *Profile) Add(nodes, gpus int, b Batch, grad, last, sync float64) error {
	fault := Record{nodes, gpus, b.PerGPU, last - sync, last}.fault()
	switch {
	case fault != "":
	case b.Accumulation < 0:
		fault = fmt.Sprintf("%d passes before the last", b.Accumulation)
	case b.Accumulation > 0 && !duration(grad):
		fault = fmt.Sprintf("a pass of %v s", grad)
	case sync < 0:
		fault = fmt.Sprintf("an exchange of %v s", sync)
	}
	if fault != "" {
		return fmt.Errorf("profile: %s is no measurement; leave the iteration out", fault)
	}
	i := 0
	for i < len(p.Sums) && (p.Sums[i].Nodes != nodes || p.Sums[i].GPUs != gpus || p.Sums[i].PerGPU != b.PerGPU) {
		i++
	}
	if i == len(p.Sums) {
		p.Sums = append(p.Sums, ProfileSum{Nodes: nodes, GPUs: gpus, PerGPU: b.PerGPU})
	}
	s := &p.Sums[i]
	s.Passes += b.Accumulation + 1
	s.Updates++
	s.Grad += last - sync
	if b.Accumulation > 0 {
		s.Grad += float64(b.Accumulation) * grad
	}
	s.Last += last
	return nil
}

// Records returns the means. A configuration counts once, however often it was seen.
func (p *Profile) Records() []Record {
	records := make([]Record, len(p.Sums))
	for i, s := range p.Sums {
		records[i] = Record{s.Nodes, s.GPUs, s.PerGPU, s.Grad / float64(s.Passes), s.Last / float64(s.Updates)}
	}
	return records
}

// MostGPUs returns the largest K that was measured: a job may double it (Pollux, §4.1).
func (p *Profile) MostGPUs() int {
	most := 0
	for _, s := range p.Sums {
		most = max(most, s.GPUs)
	}
	return most
}
