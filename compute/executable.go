package compute

// Array is one input of a batch: F or I holds the values, example by example.
// Shape is the batch's (examples first); backends go by the number of values.
type Array struct {
	Shape []int
	F     []float32
	I     []int32
}

// Batch is a share of the global batch: N examples, maybe none. Inputs follow
// Program.Inputs; each holds exactly N times the input's size, and as many times
// that as the batch has time steps where the input has a time axis.
type Batch struct {
	N      int
	Inputs []Array
}

// Key keys the randomness of a step. Examples[i] is the identity of example i in
// its data set; nil stands for 0, 1, 2, ….
type Key struct {
	Seed     uint64
	Epoch    int
	Examples []int
}

// Hooks let a worker overlap communication with a step; either may be nil. An
// error from a hook ends the step and is returned by Train.
type Hooks struct {
	// Wait is called once per block, before the block is first read. The worker
	// may set the block's values inside it.
	Wait func(block int) error
	// Ready is called once per block, when Grad(block) is final. From then on the
	// step does not read the block's values.
	Ready func(block int) error
}

// Result sums a batch up. All fields are sums, so results of shares add up to
// the result of the batch.
type Result struct {
	Loss   float64 // sum of the loss over Weight
	Weight int64   // the loss's own denominator: examples, or tokens
	Counts Counts  // what the Program's Metric is made of
}

// Add adds another share's result.
func (r *Result) Add(o Result) {
	r.Loss += o.Loss
	r.Weight += o.Weight
	for i, n := range o.Counts {
		r.Counts[i] += n
	}
}

// Mean returns the loss per unit of weight, 0 for an empty result.
func (r Result) Mean() float64 {
	if r.Weight == 0 {
		return 0
	}
	return r.Loss / float64(r.Weight)
}

// Grad is the gradient of one block, a sum over the batch. A dense block has
// Dense alone; a Rows block has the ascending Rows that the batch touched and
// their Values, one row after the other. The memory belongs to the Executable
// and is valid until its next Train.
type Grad struct {
	Dense  []float32
	Rows   []int32
	Values []float32
}

// Executable is a Program compiled for one device and one capacity. It is driven
// by one goroutine at a time; hooks run on that goroutine. After the first steps
// nothing is allocated. A block, array or range that does not exist panics, as an
// index out of range does; whatever may be wrong with a batch is an error.
type Executable interface {
	Program() *Program

	// SetParam sets elements [offset, offset+len(v)) of a dense block.
	SetParam(block, offset int, v []float32)

	// Rows makes the distinct rows of a Rows block that b needs, in ascending
	// order, the block's working set and returns them. Rows that were in the
	// working set before keep their values, others wait for SetRow. The slice
	// is valid until the next call. An id outside the table is an error.
	Rows(block int, b *Batch) ([]int32, error)

	// SetRow sets elements [offset, offset+len(v)) of one row of a Rows block. A
	// row outside the working set is ignored, so only Rows' answer takes memory.
	SetRow(block, row, offset int, v []float32)

	// SetAux sets elements of auxiliary array i, as Evaluate reads it.
	SetAux(i, offset int, v []float32)

	// Train runs forward, loss and backward on b. Without a call of Rows for
	// this batch it makes one itself, and fails if a row has never been set.
	Train(b *Batch, k Key, hooks Hooks) (Result, error)

	// Evaluate runs forward and loss on b with the auxiliary arrays in the place
	// of the batch's statistics, and without dropout or augmentation.
	Evaluate(b *Batch) (Result, error)

	// Grad returns the gradient of a block of the last Train.
	Grad(block int) Grad

	// AuxSum returns the last Train's statistic for auxiliary array i, times
	// Result.Weight.
	AuxSum(i int) []float32

	Close()
}
