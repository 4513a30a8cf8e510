package pieces

import (
	"errors"
	"fmt"
	"slices"

	"optimus/internal/failure"
)

// Part is a range of a block with all that moves with it: to a new owner, or
// into a checkpoint and back.
type Part struct {
	Block, Offset, Size int
	Params              []float32
	Slots               [][]float32 // Optimizer.Slots arrays; none for auxiliary arrays
	Updates             int64       // how many updates led to this version
	Seen                []Seen      // asp, ssp: to a new owner only
}

// receiving returns the pending generation if it has that number.
func (s *Store) receiving(number int) (*generation, error) {
	if s.pending == nil || s.pending.number != number {
		return nil, failure.E("fill", fmt.Sprintf("generation %d", number), failure.Conflict, errors.New("it is not pending"), "install it first")
	}
	return s.pending, nil
}

// label names the version at which the pending generation begins.
func (g *generation) label(boundary int64) error {
	if g.labelled && g.boundary != boundary {
		return failure.E("fill", fmt.Sprintf("generation %d", g.number), failure.Conflict,
			fmt.Errorf("it begins at version %d, not %d", g.boundary, boundary), "drop it and start again")
	}
	g.boundary, g.labelled = boundary, true
	return nil
}

// SetVersion names the version at which the pending generation begins (bsp; in
// the other modes a piece's version is its count of updates).
func (s *Store) SetVersion(number int, boundary int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.receiving(number)
	if err != nil {
		return err
	}
	return g.label(boundary)
}

// Init fills all pieces of the pending generation as Param.Init says, a pure
// function of the seed and each element's place, so that every server starts its
// own pieces with the values that one server would have given them.
func (s *Store) Init(number int, seed uint64, boundary int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.receiving(number)
	if err != nil {
		return err
	}
	if err := g.label(boundary); err != nil {
		return err
	}
	for _, p := range g.order {
		p.share = false
		p.now = state{data: newArrays(p.id.Size, p.slots)}
		p.param.Init.Fill(seed, p.id.Block, p.id.Offset, p.now.data.params)
		p.filled.add(0, p.id.Size)
	}
	return nil
}

// Fill puts a received or restored range into the pending pieces that it
// overlaps; what lies outside them is ignored, and what is there already is
// overwritten.
func (s *Store) Fill(number int, part Part) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g, err := s.receiving(number)
	if err != nil {
		return err
	}
	if err := s.checkPart(&part); err != nil {
		return failure.E("fill", fmt.Sprintf("generation %d", number), failure.InvalidArgument, err, "send what Extract or Pin returned")
	}
	for _, p := range g.order {
		if id, ok := overlap(p.id, part.id()); ok {
			p.mu.Lock()
			err := p.fill(id, &part, s.cfg.Mode)
			p.mu.Unlock()
			if err != nil {
				return failure.E("fill", fmt.Sprintf("piece %v", p.id), failure.Conflict, err, "drop the generation and start again")
			}
		}
	}
	return nil
}

func (t *Part) id() ID { return ID{t.Block, t.Offset, t.Size} }

func (s *Store) checkPart(t *Part) error {
	if t.Block < 0 || t.Block >= len(s.param) {
		return fmt.Errorf("part %v: there is no such block", t.id())
	}
	param := &s.param[t.Block]
	if size := param.Size(); t.Offset < 0 || t.Size < 0 || t.Size > size || t.Offset > size-t.Size {
		return fmt.Errorf("part %v does not lie in block %q of %d elements", t.id(), param.Name, size)
	}
	if len(t.Params) != t.Size {
		return fmt.Errorf("part %v has %d parameters", t.id(), len(t.Params))
	}
	if want := s.slotsOf(t.Block); len(t.Slots) != want {
		return fmt.Errorf("part %v has %d state arrays, the optimizer %q keeps %d", t.id(), len(t.Slots), s.cfg.Optimizer.Kind, want)
	}
	for i, x := range t.Slots {
		if len(x) != t.Size {
			return fmt.Errorf("state array %d of part %v has %d elements", i, t.id(), len(x))
		}
	}
	return nil
}

// fill copies the elements id of part into the piece.
func (p *piece) fill(id ID, part *Part, mode Mode) error {
	if p.share {
		return errors.New("the piece takes over what this server holds")
	}
	if len(p.filled) > 0 && mode == BSP && p.now.updates != part.Updates {
		return fmt.Errorf("its ranges come from update %d and from update %d", p.now.updates, part.Updates)
	}
	if p.now.data == nil {
		p.now.data = newArrays(p.id.Size, p.slots)
	}
	to, from := id.Offset-p.id.Offset, id.Offset-part.Offset
	copy(p.now.data.params[to:to+id.Size], part.Params[from:])
	for i, x := range p.now.data.slots {
		copy(x[to:to+id.Size], part.Slots[i][from:])
	}
	p.now.updates = max(p.now.updates, part.Updates)
	if p.seen != nil {
		p.mergeSeen(part.Seen)
	}
	p.filled.add(to, to+id.Size)
	return nil
}

// FillLocal fills the pending pieces with what the current pieces of this server
// hold of them at the boundary's version (asp, ssp: now). A piece whose ID stays
// takes over the current arrays at Commit, so it must then still be at the
// boundary; the rest is copied.
func (s *Store) FillLocal(number int, boundary int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.receiving(number)
	if err != nil {
		return err
	}
	if s.current == nil {
		return g.label(boundary)
	}
	if low, high := s.current.versions(); s.cfg.Mode == BSP && len(s.current.order) > 0 && (low < boundary || high > boundary+1) {
		return failure.E("fill", fmt.Sprintf("generation %d", number), failure.Conflict,
			fmt.Errorf("this server's pieces are at versions %d to %d, not at the boundary %d", low, high, boundary), "wait with Watch")
	}
	if err := g.label(boundary); err != nil {
		return err
	}
	for _, p := range g.order {
		if old := s.current.pieces[p.id]; old != nil && (s.cfg.Mode != BSP || old.now.version == boundary) {
			p.share = true
			continue
		}
		for _, old := range s.current.order {
			if id, ok := overlap(p.id, old.id); ok {
				part, err := s.read(old, id, boundary)
				if err == nil {
					part.Seen = old.listSeen()
					err = p.fill(id, &part, s.cfg.Mode)
				}
				if err != nil {
					return failure.E("fill", fmt.Sprintf("piece %v", p.id), failure.Conflict, err, "drop the generation and start again")
				}
			}
		}
	}
	return nil
}

// Missing returns the ranges of the pending generation that nothing has filled
// yet, by block and offset; none if it is not pending.
func (s *Store) Missing(number int) []ID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g, err := s.receiving(number)
	if err != nil {
		return nil
	}
	var out []ID
	for _, p := range g.order {
		p.mu.Lock()
		if !p.share {
			for _, x := range p.filled.gaps(p.id.Size) {
				out = append(out, ID{p.id.Block, p.id.Offset + x.lo, x.hi - x.lo})
			}
		}
		p.mu.Unlock()
	}
	return out
}

// Extract copies a range of the current pieces at a version (asp, ssp: at the
// newest) for its new owner. The range may span several pieces but must be held
// completely.
func (s *Store) Extract(id ID, version int64) (Part, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var parts []Part
	held := 0
	if s.current != nil {
		for _, p := range s.current.order {
			if o, ok := overlap(id, p.id); ok {
				p.mu.Lock()
				part, err := s.read(p, o, version)
				part.Seen = p.listSeen()
				p.mu.Unlock()
				if err != nil {
					return Part{}, failure.E("extract", fmt.Sprintf("range %v", id), failure.Conflict, err, "ask for a version that is kept")
				}
				parts = append(parts, part)
				held += o.Size
			}
		}
	}
	if held != id.Size || held == 0 {
		return Part{}, failure.E("extract", fmt.Sprintf("range %v", id), failure.NotFound,
			fmt.Errorf("this server holds %d of its %d elements", held, id.Size), "ask its owner")
	}
	return join(parts, s.cfg.Mode)
}

// join puts adjacent parts together.
func join(parts []Part, mode Mode) (Part, error) {
	out := parts[0]
	for _, t := range parts[1:] {
		if mode == BSP && t.Updates != out.Updates {
			return Part{}, failure.E("extract", fmt.Sprintf("range %v", t.id()), failure.Internal,
				fmt.Errorf("pieces of one block have %d and %d updates", out.Updates, t.Updates), "report this")
		}
		out.Size += t.Size
		out.Params = append(out.Params, t.Params...)
		for i := range out.Slots {
			out.Slots[i] = append(out.Slots[i], t.Slots[i]...)
		}
		out.Updates = max(out.Updates, t.Updates)
		p := piece{seen: make(map[Worker]Seen)}
		p.mergeSeen(out.Seen)
		p.mergeSeen(t.Seen)
		out.Seen = p.listSeen()
	}
	return out, nil
}

// read copies elements id of a piece at a version that it keeps.
func (s *Store) read(p *piece, id ID, version int64) (Part, error) {
	st, err := s.at(p, version)
	if err != nil {
		return Part{}, err
	}
	lo, hi := id.Offset-p.id.Offset, id.Offset-p.id.Offset+id.Size
	part := Part{Block: id.Block, Offset: id.Offset, Size: id.Size, Updates: st.updates,
		Params: slices.Clone(st.data.params[lo:hi]), Slots: make([][]float32, len(st.data.slots))}
	for i, x := range st.data.slots {
		part.Slots[i] = slices.Clone(x[lo:hi])
	}
	if p.rows() && st == &p.before {
		p.undo.overlay(p, part.Params, lo, func(a *arrays) []float32 { return a.params })
		for i := range part.Slots {
			p.undo.overlay(p, part.Slots[i], lo, func(a *arrays) []float32 { return a.slots[i] })
		}
	}
	return part, nil
}

// at returns the piece's state at a version.
func (s *Store) at(p *piece, version int64) (*state, error) {
	switch {
	case s.cfg.Mode != BSP || p.now.version == version:
		return &p.now, nil
	case p.before.data != nil && p.before.version == version:
		return &p.before, nil
	}
	return nil, fmt.Errorf("piece %v is at version %d and does not hold version %d", p.id, p.now.version, version)
}
