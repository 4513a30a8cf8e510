package data

import (
	"fmt"

	"optimus/internal/rng"
)

// PictureOptions of the readers of pictures in files, and of their generators; the
// zero value is ready for use.
type PictureOptions struct {
	// Seed of the shuffle that parts training from validation, where the set does
	// not come parted; or of the generator.
	Seed uint64
	// Side of the squares that the pictures are made; 0 is the set's own: 48 for
	// NDSB1, 256 for the others.
	Side int
	// Classes of a generated set; 0 is as many as the original has.
	Classes int
	// Skip is how many pictures that cannot be read are left out and listed in
	// Set.Skipped; one more, and the set is refused. Each is then read at the
	// opening, so that all who open the set have the same examples. 0 refuses the
	// first, when it is asked for.
	Skip int
	// Cache is how many bytes of scaled pictures are kept; ImageNet keeps as many for
	// each of its two parts. 0 is 256 MiB, which holds 1,365 of 256 × 256; a negative
	// number keeps none.
	Cache int64
}

// standardCache is what Cache stands for where it is 0.
const standardCache = 256 << 20

const sideLimit = 1 << 12

func (o PictureOptions) side(op string, standard int) (int, error) {
	if o.Side == 0 {
		return standard, nil
	}
	if o.Side < 1 || o.Side > sideLimit {
		return 0, &Error{Op: op, Kind: BadOption, Detail: fmt.Sprintf("pictures of %d×%d", o.Side, o.Side), Do: fmt.Sprintf("give a side of 1 to %d", sideLimit)}
	}
	return o.Side, nil
}

// begin makes f the faults of an opening with these options.
func (o PictureOptions) begin(f *faults, op string) error {
	f.op, f.limit = op, max(f.limit, o.Skip)
	return checkSkip(op, o.Skip)
}

// without notes what was left out of the set.
func (s *Set) without(f *faults) *Set {
	s.Skipped = f.list
	return s
}

// shuffled returns 0..n-1 in an order of the key's (Fisher and Yates, inside out).
func shuffled(n int, key rng.Key) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		j := key.Intn(uint64(i), i+1)
		ids[i], ids[j] = ids[j], int32(i)
	}
	return ids
}

// newPictureSet makes a set of two parts of galleries.
func newPictureSet(name string, classes []string, train *gallery, trainIDs []int32, valid *gallery, validIDs []int32, scale *levels) *Set {
	return &Set{
		Name: name, Classes: classes, Picture: []int{3, train.side, train.side},
		Train: &gallerySplit{train, trainIDs, scale},
		Valid: &gallerySplit{valid, validIDs, scale},
	}
}

// shift maps a value v of channel c to (v - mean[c])/scale.
func shift(mean [3]float64, scale float64) *levels {
	l := &levels{}
	for c := range l {
		for v := range l[c] {
			l[c][v] = float32((float64(v) - mean[c]) / scale)
		}
	}
	return l
}

// imageNetMean takes off the mean of ImageNet's red, green and blue.
func imageNetMean() *levels { return shift([3]float64{123.68, 116.779, 103.939}, 1) }

// all returns 0..n-1.
func all(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}
