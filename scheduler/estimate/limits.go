package estimate

import (
	"fmt"
	"math"
)

// Limits are the batches that a job's owner allows, in examples (Pollux, §4.1).
type Limits struct {
	InitBatch  int  `json:"init_batch"`            // M₀: the owner's batch for a single GPU, at least 1
	MaxBatch   int  `json:"max_batch,omitempty"`   // of the total M; 0 is M₀, a job of fixed batch
	MinPerGPU  int  `json:"min_per_gpu,omitempty"` // of m; 0 is 1
	MaxPerGPU  int  `json:"max_per_gpu,omitempty"` // of m, what fits in the GPU's memory; 0 is MaxBatch
	Accumulate bool `json:"accumulate,omitempty"`  // gradients of several passes may be added up
}

const ceilSlack = 1e-8 // a quotient that is this little above a whole number is that number

// Check says which limit contradicts another.
func (l Limits) Check() error {
	maxBatch, minPerGPU, maxPerGPU := l.bounds()
	switch {
	case l.InitBatch < 1:
		return fmt.Errorf("batch limits: initial batch is %d; it is at least 1 example", l.InitBatch)
	case l.MaxBatch < 0 || l.MinPerGPU < 0 || l.MaxPerGPU < 0:
		return fmt.Errorf("batch limits: %+v has a negative limit; 0 leaves a limit out", l)
	case maxBatch < l.InitBatch:
		return fmt.Errorf("batch limits: largest batch %d is below the initial batch %d", maxBatch, l.InitBatch)
	case maxPerGPU < minPerGPU:
		return fmt.Errorf("batch limits: at most %d but at least %d examples per GPU", maxPerGPU, minPerGPU)
	}
	return nil
}

// bounds fills in the limits that are left out.
func (l Limits) bounds() (maxBatch, minPerGPU, maxPerGPU int) {
	maxBatch, minPerGPU, maxPerGPU = l.MaxBatch, max(1, l.MinPerGPU), l.MaxPerGPU
	if maxBatch == 0 {
		maxBatch = l.InitBatch
	}
	if maxPerGPU == 0 {
		maxPerGPU = maxBatch
	}
	return maxBatch, minPerGPU, maxPerGPU
}

// span returns the range of total batches on so many GPUs, empty (lo > hi) where there is none.
func (l Limits) span(gpus int) (lo, hi float64) {
	maxBatch, minPerGPU, _ := l.bounds()
	return max(float64(l.InitBatch), float64(minPerGPU)*float64(gpus)), float64(maxBatch)
}

// divider splits the part of a GPU into passes.
type divider struct {
	least, most float64 // examples of a pass
	single      float64 // examples that may go in a single pass
}

// divider prepares for the division on so many GPUs. A single GPU takes at least two passes above M₀: from one
// gradient alone the noise, and so the learning rate, cannot be told.
func (l Limits) divider(gpus int) divider {
	_, minPerGPU, maxPerGPU := l.bounds()
	d := divider{float64(minPerGPU), float64(maxPerGPU), math.Inf(1)}
	if l.Accumulate {
		d.single = d.most * (1 + ceilSlack)
		if gpus == 1 {
			d.single = min(d.single, float64(l.InitBatch)+ceilSlack)
		}
	}
	return d
}

// divide rounds up. It answers false if a pass breaks its limits.
func (d divider) divide(local float64) (Batch, bool) {
	passes := 1.0
	if local > d.single {
		passes = max(2, math.Ceil(local/d.most-ceilSlack))
		local /= passes
	}
	m := math.Ceil(local - ceilSlack)
	return Batch{PerGPU: int(m), Accumulation: int(passes) - 1}, d.least <= m && m <= d.most
}

// Fixed divides a batch that is given, for a policy that does not choose it, or for a job's first steps: total
// examples, rounded up to what the GPUs can share equally, then down where that would exceed MaxBatch. It answers
// false, beside the batch, where that breaks the limits of a GPU.
func (l Limits) Fixed(total, gpus int) (Batch, bool) {
	if l.Check() != nil || total < 1 || gpus < 1 {
		return Batch{}, false
	}
	share := (total + gpus - 1) / gpus // whole examples of each GPU
	b, _ := l.divider(gpus).divide(float64(share))
	b = l.Cap(b, gpus)
	_, minPerGPU, maxPerGPU := l.bounds()
	return b, minPerGPU <= b.PerGPU && b.PerGPU <= maxPerGPU
}

// Cap lowers the examples per GPU, though not to 0, to what keeps the total within MaxBatch, which Best exceeds by its
// rounding up.
func (l Limits) Cap(b Batch, gpus int) Batch {
	maxBatch, _, _ := l.bounds()
	b.PerGPU = max(1, min(b.PerGPU, maxBatch/(gpus*(b.Accumulation+1))))
	return b
}

// Unmeasured is the goodput of a job of which nothing is measured yet. It scales perfectly, at its smallest batch; the
// unit is that of one GPU, since a policy compares a job with itself only.
type Unmeasured struct {
	Limits Limits `json:"limits"`
}

// Best returns the number of GPUs and the smallest batch that they share, 0 where the job cannot run so.
func (u Unmeasured) Best(nodes, gpus int) (float64, Batch) {
	if nodes < 1 || gpus < nodes || u.Limits.Check() != nil {
		return 0, Batch{}
	}
	lo, hi := u.Limits.span(gpus)
	if lo > hi {
		return 0, Batch{}
	}
	b, ok := u.Limits.Fixed(int(lo), gpus)
	if !ok {
		return 0, Batch{}
	}
	return float64(gpus), b
}
