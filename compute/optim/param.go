package optim

import (
	"fmt"
	"math"
)

// Param describes one array that the servers hold: a Block that is learned, or
// an auxiliary array (batch norm's running statistics) that is averaged.
type Param struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`          // row-major
	Rows  bool   `json:"rows,omitempty"` // first dimension indexes rows that are pulled and pushed one by one (embeddings)
	Init  Init   `json:"init"`
	// NoDecay exempts the block from weight decay (biases, batch norm).
	NoDecay bool `json:"no_decay,omitempty"`
}

// Size returns the number of elements.
func (p Param) Size() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// RowSize returns the number of elements of one row.
func (p Param) RowSize() int {
	if len(p.Shape) == 0 || p.Shape[0] == 0 {
		return 1
	}
	return p.Size() / p.Shape[0]
}

// Validate returns an error if the array has no name, a bad shape or a bad Init.
func (p Param) Validate() error {
	if p.Name == "" {
		return fmt.Errorf("%w: it has no name; give it one", ErrParam)
	}
	size := 1
	for _, d := range p.Shape {
		if d < 0 || d > 0 && size > maxSize/d {
			return fmt.Errorf("%w: %s has shape %v; dimensions must not be negative nor multiply to more than %d", ErrParam, p.Name, p.Shape, maxSize)
		}
		size *= d
	}
	if p.Rows && len(p.Shape) == 0 {
		return fmt.Errorf("%w: %s has rows but no shape; give it a first dimension", ErrParam, p.Name)
	}
	if err := p.Init.Validate(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if p.Init.Kind == Given && len(*p.Init.Values) != size {
		return fmt.Errorf("%w: %s has %d starting values for shape %v; give each of its %d elements one", ErrParam, p.Name, len(*p.Init.Values), p.Shape, size)
	}
	return nil
}

// maxSize keeps the count of bytes of an array within an int.
const maxSize = math.MaxInt / 8

// Init says how an array starts. The zero value is all zeros.
type Init struct {
	Kind  string  `json:"kind,omitempty"` // "", "constant", "uniform" (in ±Scale), "normal" (standard deviation Scale), "given" (Values)
	Scale float64 `json:"scale,omitempty"`
	// Values are all elements of the array in row-major order, of kind "given" only:
	// see InitFrom. They are never written to a file or sent, so that a job with such
	// an array runs within one process. A pointer keeps Inits comparable.
	Values *[]float32 `json:"-"`
}
