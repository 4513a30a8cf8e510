package pieces

import (
	"math"

	"optimus/internal/rng"
)

// Digest returns the sums, modulo 2⁶⁴, of a hash of every current parameter and
// of every element of the optimizer's state, with its place: block, index in the
// block, state array, and for state the piece's count of updates. Sums commute,
// so the sum over all servers depends on what they hold and not on how it is
// cut. Auxiliary arrays count as parameters. Take it when no step is running.
func (s *Store) Digest() (params, state uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.digest(s.current)
}

// DigestPending returns the digest that the pending generation will have at
// Commit, for its owner to acknowledge; 0, 0 if that generation is not pending.
func (s *Store) DigestPending(number int) (params, state uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.pending == nil || s.pending.number != number {
		return 0, 0
	}
	return s.digest(s.pending)
}

func (s *Store) digest(g *generation) (params, state uint64) {
	if g == nil {
		return 0, 0
	}
	for _, p := range g.order {
		if p.share {
			if q := s.current.pieces[p.id]; q != nil && s.current != g {
				p = q
			}
		}
		p.mu.Lock()
		if a := p.now.data; a != nil {
			t := Part{Block: p.id.Block, Offset: p.id.Offset, Size: p.id.Size, Params: a.params, Slots: a.slots, Updates: p.now.updates}
			x, y := t.Digest()
			params, state = params+x, state+y
		}
		p.mu.Unlock()
	}
	return params, state
}

// Digest returns a part's share of the digest of whoever holds it.
func (t *Part) Digest() (params, state uint64) {
	params = digest(rng.NewKey(uint64(t.Block)), t.Offset, t.Params)
	for i, x := range t.Slots {
		state += digest(rng.NewKey(uint64(t.Block), uint64(i)+1, uint64(t.Updates)), t.Offset, x)
	}
	return params, state
}

// digest hashes each element with its index: one draw of the stream for the
// place, and with that as a key one for the bits.
func digest(key rng.Key, offset int, x []float32) (sum uint64) {
	for i, v := range x {
		place := rng.Key(key.Uint64(uint64(offset + i)))
		sum += place.Uint64(uint64(math.Float32bits(v)))
	}
	return sum
}
