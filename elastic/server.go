package elastic

// Order is what a server's shell must do with its store.
type Order struct {
	Do    Do
	Gen   *Generation
	Old   *Generation
	Step  int64 // boundary, version
	From  int64 // version to rewind to (Reset)
	ID    int64 // snapshot
	Src   Source
	Path  string // checkpoint to restore from
	Moves []Move // what this server sends (Send) or expects (Install)
	Why   string
}

// Do names an order.
type Do string

// The orders, in the sequence in which one transition gives them.
const (
	DoFreeze   Do = "freeze"   // refuse pushes, answer with the lowest version
	DoReset    Do = "reset"    // rewind to From, relabel to Step
	DoInstall  Do = "install"  // make room for generation Gen
	DoReady    Do = "ready"    // tell the controller: prepared
	DoFill     Do = "fill"     // fill Gen from initial values or the checkpoint Path
	DoSend     Do = "send"     // once version Step is complete: digest, fill what stays, send what moves
	DoCommit   Do = "commit"   // Gen rules
	DoDrop     Do = "drop"     // Gen will not come
	DoSnapshot Do = "snapshot" // write version Step as snapshot ID
	DoForget   Do = "forget"   // drop snapshots armed beyond From
	DoQuit     Do = "quit"
)

// ServerMember is the server's side of the protocol: the controller's messages
// in, orders to the shell out, in sequence.
type ServerMember struct {
	Self Member

	gen    *Generation
	next   *Generation
	source Source
	path   string
	halted bool
}

// Receive takes a message.
func (s *ServerMember) Receive(m Message) []Order {
	switch m.Kind {
	case Prepare:
		var orders []Order
		if s.next != nil {
			orders = append(orders, Order{Do: DoDrop, Gen: s.next})
		}
		s.next, s.source, s.path = m.Next, m.Source, m.Checkpoint
		if s.next.Index(s.Self) >= 0 {
			orders = append(orders, Order{Do: DoInstall, Gen: s.next, Old: m.Old, Src: m.Source, Moves: s.arriving(m.Old)})
		}
		return append(orders, Order{Do: DoReady, Gen: m.Next})
	case Switch:
		return s.boundary(m)
	case Commit:
		if s.next == nil || s.next.Number != m.Gen {
			return nil
		}
		next := s.next
		s.next, s.halted = nil, false
		if next.Index(s.Self) < 0 {
			return nil // leaves: serves the old version until dismissed
		}
		s.gen = next
		return []Order{{Do: DoCommit, Gen: next, Step: m.Step}}
	case Drop:
		if s.next == nil || s.next.Number != m.Gen {
			return nil
		}
		next := s.next
		s.next = nil
		return []Order{{Do: DoDrop, Gen: next}}
	case Halt:
		s.halted = true
		return []Order{{Do: DoFreeze, Step: int64(m.Gen)}}
	case Snapshot:
		if s.gen == nil || s.gen.Number != m.Gen {
			return nil
		}
		return []Order{{Do: DoSnapshot, ID: m.ID, Step: m.Step, Gen: s.gen}}
	case Dismiss:
		return []Order{{Do: DoQuit, Why: m.Reason}}
	}
	return nil
}

// boundary turns a Switch into the orders that bring the boundary's version to
// this server's pieces of the next generation.
func (s *ServerMember) boundary(m Message) (orders []Order) {
	if s.next == nil || s.next.Number != m.Gen {
		return nil
	}
	orders = append(orders, Order{Do: DoForget, From: m.Rewind})
	if s.source == FromInit || s.source == FromCheckpoint {
		return append(orders, Order{Do: DoFill, Gen: s.next, Src: s.source, Path: s.path, Step: m.Step})
	}
	if s.halted {
		orders = append(orders, Order{Do: DoReset, From: m.Rewind, Step: m.Step})
	}
	return append(orders, Order{Do: DoSend, Gen: s.next, Old: s.gen, Step: m.Step, Moves: s.leaving()})
}

// leaving lists what this server sends to others.
func (s *ServerMember) leaving() (list []Move) {
	if s.gen == nil || s.source != FromPeers {
		return nil
	}
	self := s.gen.Index(s.Self)
	for _, m := range Moves(s.gen, s.next) {
		if m.From == self {
			list = append(list, m)
		}
	}
	return list
}

// arriving lists what others send to this server.
func (s *ServerMember) arriving(old *Generation) (list []Move) {
	if old == nil || s.source != FromPeers {
		return nil
	}
	self := s.next.Index(s.Self)
	for _, m := range Moves(old, s.next) {
		if m.To == self {
			list = append(list, m)
		}
	}
	return list
}
