package pieces

import (
	"fmt"
	"sync"

	"optimus/internal/failure"
)

// Snapshot is an unchanging view of all current pieces at one version, to be
// written to a checkpoint while training goes on.
type Snapshot struct {
	Version int64
	parts   []Part
	held    []*arrays
	once    sync.Once
}

// Pin takes a snapshot of version (asp, ssp: of each piece's newest version, one
// piece after the other). Dense arrays are held, not copied: the store takes
// fresh memory instead of overwriting them. Tables of rows are copied.
func (s *Store) Pin(version int64) (*Snapshot, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	snap := &Snapshot{Version: version}
	if s.current == nil {
		return nil, failure.E("pin", fmt.Sprintf("version %d", version), failure.Conflict, fmt.Errorf("no generation was committed"), "commit one first")
	}
	for _, p := range s.current.order {
		if err := s.pin(snap, p, version); err != nil {
			snap.Release()
			return nil, failure.E("pin", fmt.Sprintf("version %d", version), failure.Conflict, err, "pin a version when Watch reports it")
		}
	}
	return snap, nil
}

func (s *Store) pin(snap *Snapshot, p *piece, version int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows() {
		part, err := s.read(p, p.id, version)
		snap.parts = append(snap.parts, part)
		return err
	}
	st, err := s.at(p, version)
	if err != nil {
		return err
	}
	snap.held = append(snap.held, st.data.hold())
	snap.parts = append(snap.parts, Part{Block: p.id.Block, Offset: p.id.Offset, Size: p.id.Size,
		Params: st.data.params, Slots: st.data.slots, Updates: st.updates})
	return nil
}

// Parts returns one part per piece, by block and offset. Their arrays must not
// be written to, nor read after Release.
func (p *Snapshot) Parts() []Part { return p.parts }

// Release lets the store reuse the arrays. It may be called more than once.
func (p *Snapshot) Release() {
	p.once.Do(func() {
		for _, a := range p.held {
			a.release()
		}
		p.parts, p.held = nil, nil
	})
}
