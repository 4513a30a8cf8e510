package pieces

import (
	"errors"
	"fmt"

	"optimus/internal/failure"
)

// Rewind takes a step back: every piece at version to+1 returns to version to,
// with its optimizer state and count of updates; what was contributed to a later
// step is dropped and parked pulls are answered with Refresh. A piece that nobody
// waited for and that is not at version to yet keeps what brings it there. If a
// piece cannot return, nothing changes and an error names it.
//
// A contribution of the abandoned attempt that is still on its way is taken for
// the new attempt if it arrives under the same generation. In bsp it is the same
// contribution, bit for bit; where that is not so, or where the members changed,
// install a new generation.
func (s *Store) Rewind(to int64) error {
	c := s.begin()
	s.mu.Lock()
	g := s.current
	err := s.returnable(g, to, to+1)
	if err == nil {
		g.rewind(to, c)
	}
	s.mu.Unlock()
	s.finish(c)
	if err != nil {
		return failure.E("rewind", fmt.Sprintf("to version %d", to), failure.Conflict, err, "restore a checkpoint")
	}
	return nil
}

// Relabel skips a step: every piece takes version `from` unchanged as version
// `to`. Pieces that already made version `to` return to `from` first, so Relabel
// is Rewind and skip in one and may be repeated.
func (s *Store) Relabel(from, to int64) error {
	c := s.begin()
	s.mu.Lock()
	g := s.current
	err := s.returnable(g, from, to)
	if err == nil && to <= from {
		err = errors.New("versions only go up")
	}
	if err == nil {
		g.rewind(from, c)
		for _, p := range g.order {
			p.skipTo(skip{from, to})
		}
		s.watches.check(g, c)
	}
	s.mu.Unlock()
	s.finish(c)
	if err != nil {
		return failure.E("relabel", fmt.Sprintf("version %d as %d", from, to), failure.Conflict, err, "rewind first, or restore a checkpoint")
	}
	return nil
}

// returnable returns why not all pieces are at version to or below, or at past
// with version to still held.
func (s *Store) returnable(g *generation, to, past int64) error {
	if g == nil {
		return errors.New("no generation was committed")
	}
	if s.cfg.Mode != BSP {
		return fmt.Errorf("mode %v has no steps", s.cfg.Mode)
	}
	for _, p := range g.order {
		if p.now.version <= to {
			continue
		}
		if p.now.version != past || p.before.data == nil || p.before.version != to {
			return fmt.Errorf("piece %v is at version %d and does not hold it", p.id, p.now.version)
		}
	}
	return nil
}

func (g *generation) rewind(to int64, c *calls) {
	for _, p := range g.order {
		if p.now.version > to {
			p.revert()
		}
		p.dropPushes(to)
	}
	if g.ballots != nil {
		g.ballots.rewind(to)
	}
	g.refreshParked(c)
}
