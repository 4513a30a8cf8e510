package order

import (
	"math/bits"

	"optimus/internal/rng"
)

// Four rounds of the network give a pseudorandom permutation of wide blocks
// (Luby and Rackoff 1988). The fewer bits a half has, the fewer functions a
// round can choose from, and the more rounds it takes until every order of a
// small set comes equally often.
const (
	rounds      = 8
	smallRounds = 32
	smallWidth  = 8 // bits
)

// permutation is a bijection of 0..n-1, keyed by seed and epoch. It encrypts a
// position, as a number of ceil(log2 n) bits, by an alternating Feistel network;
// results of n or more are encrypted again until they fall below n ("cycle
// walking", Black and Rogaway 2002). The block holds fewer than 2n values, so
// that takes under two turns on average.
type permutation struct {
	key      rng.Key
	n        int
	rounds   uint64
	low      uint // bits of the low half
	lowMask  uint64
	highMask uint64
}

func newPermutation(seed uint64, epoch, n int) permutation {
	width := uint(bits.Len64(uint64(max(n, 1) - 1)))
	low := (width + 1) / 2
	turns := uint64(rounds)
	if width <= smallWidth {
		turns = smallRounds
	}
	return permutation{
		rounds:   turns,
		key:      rng.NewKey(seed, uint64(epoch)),
		n:        n,
		low:      low,
		lowMask:  1<<low - 1,
		highMask: 1<<(width-low) - 1,
	}
}

// at returns the id at position i, which must be in 0..n-1.
func (p *permutation) at(i int) int {
	x := uint64(i)
	for {
		if x = p.encrypt(x); x < uint64(p.n) {
			return int(x)
		}
	}
}

// encrypt changes one half by a keyed function of the other, in turn. Each
// round is its own inverse, so the whole is a bijection whatever the widths.
func (p *permutation) encrypt(x uint64) uint64 {
	lo, hi := x&p.lowMask, x>>p.low
	for r := uint64(0); r < p.rounds; r += 2 {
		lo ^= p.key.Uint64(r<<32|hi) >> 32 & p.lowMask
		hi ^= p.key.Uint64((r+1)<<32|lo) >> 32 & p.highMask
	}
	return hi<<p.low | lo
}
