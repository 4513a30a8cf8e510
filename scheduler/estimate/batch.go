package estimate

// Batch is how one step's examples are divided: each GPU runs PerGPU examples (m) in Accumulation passes (s) before the
// pass that ends with the exchange of gradients. The total batch is M = gpus·PerGPU·(Accumulation+1).
type Batch struct {
	PerGPU       int `json:"per_gpu"`
	Accumulation int `json:"accumulation,omitempty"`
}

// Total returns M on a number of GPUs.
func (b Batch) Total(gpus int) int { return gpus * b.PerGPU * (b.Accumulation + 1) }
