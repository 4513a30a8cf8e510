package elastic

// The values below cross between a worker's loop and whatever exchanges
// parameters for it (a client of parameter servers, or a ring). They stand here
// since both sides know this package and neither knows the other.

// Stamp says which step an exchange belongs to.
type Stamp struct {
	// Step is the step being made: a pull asks for version Step-1. In asp and
	// ssp it counts this worker's own steps.
	Step int64
	// Sequence counts this incarnation's pushes from 1 (asp, ssp).
	Sequence int64
}

// Gradient is one block's contribution, a sum over examples. Values is dense, or
// one row after the other for the ascending Rows. A block past the learned ones
// is an auxiliary array's statistic.
type Gradient struct {
	Block  int
	Rows   []int32
	Values []float32
}

// Sink receives parameters. Offsets count elements of the block, the row or the
// auxiliary array.
type Sink interface {
	SetParam(block, offset int, v []float32)
	SetRow(block, row, offset int, v []float32)
	SetAux(i, offset int, v []float32)
}
