package elastic

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
)

// shardElem is one element of a snapshot's shard.
type shardElem struct {
	Block, Offset int
	Value         uint64
}

// store is one generation on a fake server.
type store struct {
	gen      *Generation
	version  int64
	boundary int64
	now      map[elem]uint64
	before   map[elem]uint64 // version-1; nil if not held
	pushes   map[int64]map[Member]bool
	missing  map[Move]bool // moves that have not come
	filled   bool
	got      int64
	reported bool
	took     map[pushID]bool // asp, ssp: applied in this generation
}

// pushID names a push of a job without common steps.
type pushID struct {
	from Member
	seq  int64
}

// value is what a push adds to every element: sums that differ between two
// elements show a push that is on one of them only, or on one of them twice.
func (p pushID) value() uint64 {
	f := fnv.New64a()
	fmt.Fprint(f, p)
	return f.Sum64()
}

type outgoing struct {
	gen    *Generation
	move   Move
	values map[elem]uint64
}

type armed struct {
	id, step int64
	gen      int
	index    int
}

// fakeServer does what the orders say with a store of hashes.
type fakeServer struct {
	w       *world
	member  ServerMember
	cur     *store
	prev    *store // the generation before, at its end
	next    *store
	frozen  bool
	vetoed  bool
	sends   []Order // wait for their version
	fills   []Order
	out     []outgoing
	armed   []armed
	writing []func()
}

func (s *fakeServer) receive(m Message) {
	for _, o := range s.member.Receive(m) {
		s.do(o)
		if s.w.servers[s.member.Self] == nil {
			return
		}
	}
	s.pin()
}

func (s *fakeServer) do(o Order) {
	w, self := s.w, s.member.Self
	switch o.Do {
	case DoInstall:
		s.next = &store{gen: o.Gen, pushes: map[int64]map[Member]bool{}, missing: map[Move]bool{}, now: map[elem]uint64{}, took: map[pushID]bool{}}
		for _, m := range o.Moves {
			s.next.missing[m] = true
		}
	case DoReady:
		w.send(self, Message{Kind: Prepared, Gen: o.Gen.Number})
	case DoFill:
		s.fills = append(s.fills, o)
	case DoSend:
		s.sends = append(s.sends, o)
	case DoReset:
		s.reset(o)
	case DoCommit:
		s.commit(o)
	case DoDrop:
		if s.next != nil && s.next.gen.Number == o.Gen.Number {
			s.next = nil
		}
		s.sends, s.out = nil, nil
	case DoFreeze:
		s.frozen = true
		v := int64(0)
		if s.cur != nil {
			v = s.cur.version
		}
		w.send(self, Message{Kind: Halted, Gen: int(o.Step), Step: v})
	case DoSnapshot:
		s.armed = append(s.armed, armed{o.ID, o.Step, o.Gen.Number, o.Gen.Index(self)})
		w.send(self, Message{Kind: Armed, Gen: o.Gen.Number, ID: o.ID, Step: o.Step})
	case DoForget:
		if w.cfg.Mode == BSP {
			s.armed = slices.DeleteFunc(s.armed, func(a armed) bool { return a.step > o.From })
		}
	case DoQuit:
		w.end(self)
	}
}

func (s *fakeServer) reset(o Order) {
	if s.w.cfg.Mode != BSP {
		return
	}
	c := s.cur
	if c.version > o.From {
		if c.version != o.From+1 || c.before == nil {
			s.w.fatalf("%s cannot go back from version %d to %d", s.member.Self, c.version, o.From)
		}
		c.version, c.now, c.before = o.From, c.before, nil
	}
	c.pushes, s.vetoed = map[int64]map[Member]bool{}, false
	if o.Step > o.From {
		c.version, c.before = o.Step, c.now
	}
	s.check(c)
}

func (s *fakeServer) check(c *store) {
	if s.w.cfg.Mode != BSP {
		return
	}
	for e, v := range c.now {
		if v != s.w.value(e, c.version) {
			s.w.fatalf("%s: element %v is wrong at version %d of generation %d", s.member.Self, e, c.version, c.gen.Number)
		}
	}
}

func (s *fakeServer) commit(o Order) {
	w := s.w
	if !w.committed[o.Gen.Number] {
		w.fatalf("%s commits generation %d, which is not in the journal", s.member.Self, o.Gen.Number)
	}
	if s.next == nil || s.next.gen.Number != o.Gen.Number || !s.next.reported {
		w.fatalf("%s commits generation %d, which it does not have", s.member.Self, o.Gen.Number)
	}
	s.prev, s.cur, s.next = s.cur, s.next, nil
	s.frozen, s.vetoed = false, false
	n := 0
	for _, p := range Owned(o.Gen, o.Gen.Index(s.member.Self)) {
		n += p.Size
	}
	if len(s.cur.now) != n || s.cur.version != o.Step && w.cfg.Mode == BSP {
		w.fatalf("%s has %d of %d elements at version %d of %d", s.member.Self, len(s.cur.now), n, s.cur.version, o.Step)
	}
	s.check(s.cur)
	s.apply()
}

// todo lists what the server could do now.
func (s *fakeServer) todo() (acts []func()) {
	for i, o := range s.sends {
		if o.Old == nil || s.cur != nil && (s.w.cfg.Mode != BSP || s.cur.version >= o.Step) {
			acts = append(acts, func() { s.sends = slices.Delete(s.sends, i, i+1); s.extract(o) })
		}
	}
	for i, o := range s.fills {
		acts = append(acts, func() { s.fills = slices.Delete(s.fills, i, i+1); s.fill(o) })
	}
	for i, o := range s.out {
		to := s.w.servers[o.gen.Servers[o.move.To].Member]
		if to != nil && to.next != nil && to.next.gen.Number == o.gen.Number {
			acts = append(acts, func() { s.out = slices.Delete(s.out, i, i+1); to.arrived(o) })
		}
	}
	for i, write := range s.writing {
		acts = append(acts, func() { s.writing = slices.Delete(s.writing, i, i+1); write() })
	}
	return acts
}

func digest(values map[elem]uint64, aux int) (sum uint64) {
	for e, v := range values {
		if e.block < aux {
			sum += v * uint64(e.block*1000+e.offset+1)
		}
	}
	return sum
}

// at returns the values of a version that the store holds.
func (s *fakeServer) at(version int64) map[elem]uint64 {
	switch {
	case s.w.cfg.Mode != BSP || s.cur.version == version:
		return s.cur.now
	case s.cur.version == version+1 && s.cur.before != nil:
		return s.cur.before
	}
	s.w.fatalf("%s is at version %d and does not hold %d", s.member.Self, s.cur.version, version)
	return nil
}

func (s *fakeServer) extract(o Order) {
	self := s.member.Self
	if o.Old != nil {
		if s.cur.gen.Number != o.Old.Number {
			return
		}
		have := s.at(o.Step)
		s.w.send(self, Message{Kind: Extracted, Gen: o.Gen.Number, Params: digest(have, o.Gen.Learned)})
		for _, m := range o.Moves {
			x := outgoing{o.Gen, m, map[elem]uint64{}}
			for i := range m.Size {
				e := elem{m.Block, m.Offset + i}
				v, ok := have[e]
				if !ok {
					s.w.fatalf("%s does not hold %v, which it is to send", self, e)
				}
				x.values[e] = v
			}
			s.out = append(s.out, x)
		}
		if n := s.next; n != nil && n.gen.Number == o.Gen.Number {
			for _, p := range Owned(n.gen, n.gen.Index(self)) {
				for i := range p.Size {
					if v, ok := have[elem{p.Block, p.Offset + i}]; ok {
						n.now[elem{p.Block, p.Offset + i}] = v
					}
				}
			}
		}
	}
	if n := s.next; n != nil && n.gen.Number == o.Gen.Number {
		n.version, n.boundary, n.filled = o.Step, o.Step, true
		s.tryMoved()
	}
}

func (s *fakeServer) fill(o Order) {
	n := s.next
	if n == nil || n.gen.Number != o.Gen.Number {
		return
	}
	for _, p := range Owned(n.gen, n.gen.Index(s.member.Self)) {
		for i := range p.Size {
			e := elem{p.Block, p.Offset + i}
			if o.Src == FromCheckpoint {
				n.now[e] = s.w.saved[o.Path].values[e]
			} else {
				n.now[e] = s.w.value(e, 0)
			}
		}
	}
	n.version, n.boundary, n.filled = o.Step, o.Step, true
	s.tryMoved()
}

func (s *fakeServer) arrived(o outgoing) {
	if !s.next.missing[o.move] {
		s.w.fatalf("%s got %v, which it does not expect", s.member.Self, o.move)
	}
	delete(s.next.missing, o.move)
	for e, v := range o.values {
		s.next.now[e] = v
	}
	if !o.move.Aux {
		s.next.got += int64(o.move.Size)
	}
	for m := range s.next.missing {
		if m.From == o.move.From {
			s.tryMoved()
			return
		}
	}
	s.w.send(s.member.Self, Message{Kind: Received, Gen: o.gen.Number, Peer: o.move.From})
	s.tryMoved()
}

func (s *fakeServer) tryMoved() {
	n := s.next
	if !n.filled || n.reported || len(n.missing) > 0 {
		return
	}
	n.reported = true
	s.w.send(s.member.Self, Message{Kind: Moved, Gen: n.gen.Number, Params: digest(n.now, n.gen.Learned), Elements: n.got})
}

type verdict int

const (
	ok verdict = iota
	wait
	refresh
)

func (s *fakeServer) pull(gen int, version int64) verdict {
	switch {
	case s.next != nil && s.next.gen.Number == gen:
		return wait
	case s.cur != nil && s.cur.gen.Number == gen:
		switch {
		case s.w.cfg.Mode != BSP, s.cur.version == version, s.cur.version == version+1 && s.cur.before != nil:
			return ok
		case s.cur.version < version:
			return wait
		}
	case s.prev != nil && s.prev.gen.Number == gen && version == s.cur.boundary && s.cur.version == version:
		return ok
	}
	return refresh
}

func (s *fakeServer) push(gen int, step int64, from Member) verdict {
	w := s.w
	if s.frozen {
		return refresh
	}
	c := s.cur
	if s.next != nil && s.next.gen.Number == gen {
		c = s.next
	} else if c == nil {
		return refresh
	} else if step <= c.version {
		return ok // a duplicate
	} else if c.gen.Number != gen {
		return refresh
	}
	if c.gen.Rank(from) < 0 {
		return refresh
	}
	if b, fixed := w.bounds[gen]; fixed && step > b {
		w.fatalf("%s pushed step %d under generation %d, beyond the boundary %d", from, step, gen, b)
	}
	w.pushed[gen] = max(w.pushed[gen], step)
	if c == s.cur && step > c.version+2 {
		w.fatalf("%s pushed step %d to version %d", from, step, c.version)
	}
	if c.pushes[step] == nil {
		c.pushes[step] = map[Member]bool{}
	}
	c.pushes[step][from] = true
	if c == s.cur {
		s.apply()
	}
	return ok
}

// pushOne applies a push in mode asp or ssp; false tells the worker to refresh. A
// server that stands still while a live worker pushes to it would leave that push
// on some servers only.
func (s *fakeServer) pushOne(gen int, p pushID) bool {
	if s.frozen || s.cur.gen.Number > gen {
		t := s.w.ctl.next
		if s.w.ctl.peers[p.from] != nil && s.w.ctl.gen.Number == gen && (t == nil || t.source != FromCheckpoint) {
			s.w.fatalf("%s stands still in the middle of a push of %s", s.member.Self, p.from)
		}
		return false
	}
	if !s.cur.took[p] {
		s.cur.took[p] = true
		v := p.value()
		for e := range s.cur.now {
			s.cur.now[e] += v
		}
	}
	return true
}

// apply makes the versions that all workers have contributed to.
func (s *fakeServer) apply() {
	c := s.cur
	for !s.vetoed && len(c.pushes[c.version+1]) == len(c.gen.Workers) {
		step := c.version + 1
		if s.w.bad[step] {
			s.vetoed = true
			s.w.send(s.member.Self, Message{Kind: Vetoed, Gen: c.gen.Number, Step: step, Culprit: -1, Block: "b"})
			break
		}
		delete(c.pushes, step)
		c.before, c.now = c.now, map[elem]uint64{}
		for e := range c.before {
			c.now[e] = s.w.value(e, step)
		}
		c.version = step
		s.prev = nil
		s.pin()
	}
	s.pin()
}

// pin takes the armed snapshots whose version is there; they are written later.
func (s *fakeServer) pin() {
	s.armed = slices.DeleteFunc(s.armed, func(a armed) bool {
		if s.cur == nil || s.w.cfg.Mode == BSP && s.cur.version < a.step {
			return false
		}
		var shard []shardElem
		for e, v := range s.at(a.step) {
			shard = append(shard, shardElem{e.block, e.offset, v})
		}
		raw, err := json.Marshal(shard)
		if err != nil {
			s.w.t.Fatal(err)
		}
		s.writing = append(s.writing, func() {
			s.w.send(s.member.Self, Message{Kind: Snapshotted, Gen: a.gen, ID: a.id, Step: a.step, Shard: raw})
		})
		return true
	})
}

// fakeWorker does what its member says, one server at a time.
type fakeWorker struct {
	w       *world
	member  WorkerMember
	running Directive
	pulled  map[Member]bool
	pushed  map[Member]bool
	stuck   bool // refused: waits for another directive
	at      int  // asp: position in the chunk
	most    int64
	seq     int64 // asp: of the push under way or the last one
}

// todo returns the worker's next move, nil if it has to wait.
func (k *fakeWorker) todo() func() {
	d := k.member.Next()
	if d != k.running {
		same := d.Task == k.running.Task && d.Step == k.running.Step && d.Push == k.running.Push && d.Work == k.running.Work
		if pulling := same && len(k.pushed) == 0 && len(k.pulled) < k.count(k.running.Pull); !same || pulling {
			k.pulled, k.pushed = map[Member]bool{}, map[Member]bool{}
			if d.Work != nil {
				k.at, k.most = d.Work.UpTo, d.Work.Most
			}
		}
		k.running, k.stuck = d, false
	}
	if k.stuck {
		return nil
	}
	self := k.member.Self
	switch d.Task {
	case Quit:
		return func() { k.w.end(self) }
	case AskWork:
		return func() {
			k.member.Asked()
			k.w.send(self, Message{Kind: WantChunk, Gen: d.Pull.Number})
		}
	case Train:
		return k.train(d)
	case TrainWork:
		return k.work(d)
	case Assess:
		return k.assess(d)
	}
	return nil
}

func (k *fakeWorker) count(g *Generation) int {
	if g == nil {
		return 0
	}
	return len(g.Servers)
}

// visit calls the next server that is not in done.
func (k *fakeWorker) visit(g *Generation, done map[Member]bool, call func(*fakeServer) verdict) func() {
	for _, a := range g.Servers {
		s := k.w.servers[a.Member]
		if done[a.Member] || s == nil {
			continue
		}
		v := call(s)
		if v == wait {
			continue
		}
		return func() {
			if v == refresh {
				k.stuck = true
			} else {
				done[a.Member] = true
			}
		}
	}
	return nil
}

func (k *fakeWorker) train(d Directive) func() {
	if len(k.pulled) < len(d.Pull.Servers) {
		return k.visit(d.Pull, k.pulled, func(s *fakeServer) verdict { return s.pull(d.Pull.Number, d.Step-1) })
	}
	for _, a := range d.Push.Servers {
		s := k.w.servers[a.Member]
		if k.pushed[a.Member] || s == nil {
			continue
		}
		return func() {
			if s.push(d.Push.Number, d.Step, k.member.Self) == refresh {
				k.stuck = true
			} else {
				k.pushed[a.Member] = true
			}
		}
	}
	if len(k.pushed) < len(d.Push.Servers) {
		return nil
	}
	return func() {
		k.member.Did(d.Step)
		k.w.send(k.member.Self, Message{Kind: Progress, Gen: d.Push.Number, Step: d.Step, Report: &Report{Weight: 1}})
	}
}

func (k *fakeWorker) assess(d Directive) func() {
	if len(k.pulled) < len(d.Pull.Servers) {
		return k.visit(d.Pull, k.pulled, func(s *fakeServer) verdict { return s.pull(d.Pull.Number, d.Step) })
	}
	return func() {
		k.member.Assessed()
		k.w.send(k.member.Self, Message{Kind: Evaluated, Gen: d.Pull.Number, Step: d.Step, Report: &Report{Weight: 1}})
	}
}

// work trains a chunk, a push at a time, one server after the other.
func (k *fakeWorker) work(d Directive) func() {
	self := k.member.Self
	if k.at >= d.Work.Chunk.Hi || k.most == 0 {
		return func() {
			done := *d.Work
			done.UpTo = k.at
			k.member.Worked()
			k.w.send(self, Message{Kind: WantChunk, Gen: d.Push.Number, Chunk: &done})
		}
	}
	if k.member.pushing == (Directive{}) {
		return func() {
			if !k.member.Pushing(d) {
				k.w.fatalf("%s may not do what it was told to do", self)
			}
			k.seq++
			k.pushed = map[Member]bool{}
		}
	}
	for _, a := range d.Push.Servers {
		s := k.w.servers[a.Member]
		if k.pushed[a.Member] || s == nil || s.cur == nil || s.cur.gen.Number < d.Push.Number {
			continue // a server that has not heard of the commit makes the worker wait
		}
		return func() {
			if s.pushOne(d.Push.Number, pushID{self, k.seq}) {
				k.pushed[a.Member] = true
			} else {
				k.stuck = true
			}
		}
	}
	if len(k.pushed) < len(d.Push.Servers) {
		return nil
	}
	return func() {
		hi := min(k.at+d.Work.Batch, d.Work.Chunk.Hi)
		for ; k.at < hi; k.at++ {
			k.w.counts[[2]int{d.Work.Chunk.Epoch, k.at}]++
		}
		k.most--
		done := *d.Work
		done.UpTo = k.at
		k.w.send(self, Message{Kind: Progress, Gen: d.Push.Number, Step: k.seq, Report: &Report{Weight: 1}, Chunk: &done})
		for _, a := range k.member.Pushed() {
			k.w.send(self, a)
		}
	}
}
