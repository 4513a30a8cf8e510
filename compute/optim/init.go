package optim

import (
	"errors"
	"fmt"
	"math"

	"optimus/internal/rng"
)

// The kinds of Init; the empty kind is zero.
const (
	Constant = "constant" // Scale
	Uniform  = "uniform"  // uniform in ±Scale
	Normal   = "normal"   // normal with mean 0 and standard deviation Scale
	Given    = "given"    // Values
)

// InitFrom starts an array with values of its own, in row-major order, one for each
// element. They are not copied and must not change any more.
func InitFrom(values []float32) Init { return Init{Kind: Given, Values: &values} }

// ErrParam is the error that Param.Validate and Init.Validate wrap.
var ErrParam = errors.New("invalid parameter array")

// Validate returns an error if the kind is unknown or its scale makes no sense, or if
// given values are missing or not finite.
func (in Init) Validate() error {
	if in.Values != nil && in.Kind != Given {
		return fmt.Errorf("%w: init has values but kind %q; make it with InitFrom", ErrParam, in.Kind)
	}
	switch in.Kind {
	case "":
		if in.Scale != 0 {
			return fmt.Errorf("%w: init has scale %v but no kind; set both or neither", ErrParam, in.Scale)
		}
		return nil
	case Constant:
		if math.IsNaN(in.Scale) || math.IsInf(in.Scale, 0) {
			return fmt.Errorf("%w: init constant is %v; it must be finite", ErrParam, in.Scale)
		}
		return nil
	case Uniform, Normal:
		if !(in.Scale >= 0) || math.IsInf(in.Scale, 1) {
			return fmt.Errorf("%w: init scale is %v; it must be finite and not negative", ErrParam, in.Scale)
		}
		return nil
	case Given:
		return in.validateValues()
	}
	return fmt.Errorf("%w: init kind %q is unknown; use %s, %s, %s, %s or none", ErrParam, in.Kind, Constant, Uniform, Normal, Given)
}

func (in Init) validateValues() error {
	switch {
	case in.Scale != 0:
		return fmt.Errorf("%w: init given has scale %v; it has none", ErrParam, in.Scale)
	case in.Values == nil:
		return fmt.Errorf("%w: init given has no values; they are known only to the process that they were given to", ErrParam)
	}
	for i, v := range *in.Values {
		if v-v != 0 {
			return fmt.Errorf("%w: element %d of the given values is %v; it must be finite", ErrParam, i, v)
		}
	}
	return nil
}

// Fill writes elements offset, offset+1, … of a block into dst. Element i is a
// function of the seed, the block's number and i alone, so that any cut of the
// block gives the same bits. An unknown kind, which Validate refuses, is zero.
func (in Init) Fill(seed uint64, block int, offset int, dst []float32) {
	if in.Kind == Given {
		copy(dst, (*in.Values)[offset:])
		return
	}
	key := rng.NewKey(seed, initStream, uint64(block))
	for i := range dst {
		x := uint64(offset) + uint64(i)
		switch in.Kind {
		case Constant:
			dst[i] = float32(in.Scale)
		case Uniform:
			dst[i] = float32(in.Scale * (2*key.Float64(x) - 1))
		case Normal:
			dst[i] = float32(in.Scale * key.Normal(x))
		default:
			dst[i] = 0
		}
	}
}

// initStream sets these values apart from others drawn with the same seed.
const initStream = 0x696e6974 // "init"
