package elastic

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"optimus/data/order"
	"optimus/paa"
)

// A world is a controller with servers and workers that are as small as they can
// be and still tell right from wrong: a parameter's value at a version is the
// hash of the steps that led to it, whoever made them. Members and controller
// are joined by FIFO links; a seeded scheduler picks what happens next.
type world struct {
	t    *testing.T
	rng  *rand.Rand
	seed uint64
	cfg  Config
	ctl  *Controller

	up, down map[Member][]Message // links to and from the controller
	servers  map[Member]*fakeServer
	workers  map[Member]*fakeWorker
	starting []Member
	told     []func() // answers of the shell that are under way

	bad       map[int64]bool // steps that are vetoed
	committed map[int]bool   // generations whose commit is journalled
	bounds    map[int]int64  // no push of this generation may pass that step
	pushed    map[int]int64  // largest step pushed under a generation
	saved     map[string]save
	counted   map[int64]map[[2]int]int // the counts that a snapshot holds
	whole     []string                 // the checkpoints whose manifest was written, oldest first
	rotten    map[string]bool          // those that are found damaged
	history   int64                    // last step in the surviving history
	evaluated map[int64]bool
	commands  int64
	answers   map[int64]int
	counts    map[[2]int]int // asp: how often a position was applied
	log       []string
	shown     []string // the events, as scripts show them

	kills, zombies, rescales, leaves, checkpoints int // chaos still to come
	failWrites, stop, rot                         bool
	lostServer, lostAny                           bool // a report may be missing

	gens     map[int]*Generation
	ruling   int
	restores map[int]string // generation → the checkpoint that it begins with
}

type save struct {
	step   int64
	values map[elem]uint64
	counts map[[2]int]int
	ledger *order.Ledger
}

type elem struct{ block, offset int }

// value is what an element holds at a version.
func (w *world) value(e elem, version int64) uint64 {
	h := uint64(e.block*1000 + e.offset + 1)
	for s := int64(1); s <= version; s++ {
		if !w.bad[s] {
			f := fnv.New64a()
			fmt.Fprint(f, h, s)
			h = f.Sum64()
		}
	}
	return h
}

func newWorld(t *testing.T, seed uint64, cfg Config) *world {
	ctl, err := NewController(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), cfg: ctl.cfg, ctl: ctl,
		up: map[Member][]Message{}, down: map[Member][]Message{},
		servers: map[Member]*fakeServer{}, workers: map[Member]*fakeWorker{}, bad: map[int64]bool{},
		committed: map[int]bool{}, bounds: map[int]int64{}, pushed: map[int]int64{}, saved: map[string]save{}, counted: map[int64]map[[2]int]int{}, rotten: map[string]bool{},
		gens: map[int]*Generation{}, restores: map[int]string{}, evaluated: map[int64]bool{}, answers: map[int64]int{}, counts: map[[2]int]int{}}
	return w
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	state, reason := w.ctl.State()
	tail := w.log[max(0, len(w.log)-logTail):]
	w.t.Fatalf("seed %d: %s\nstate %s (%s), step %d, %s\n%s", w.seed, fmt.Sprintf(format, args...), state, reason, w.ctl.Done(), w.ctl.Waiting(), strings.Join(tail, "\n"))
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// drain carries out what the controller has decided and checks it.
func (w *world) drain() {
	r := w.ctl.Take()
	for _, e := range r.Journal {
		w.note("journal %s gen %d step %d %s", e.Kind, e.Gen, e.Step, e.Reason)
		switch e.Kind {
		case "prepare":
			if w.gens[e.Gen-1] == nil && e.Gen > 1 || w.gens[e.Gen] != nil {
				w.fatalf("generation %d is prepared out of turn", e.Gen)
			}
			w.gens[e.Gen] = e.Generation
		case "commit":
			if e.Gen <= w.ruling {
				w.fatalf("generation %d follows %d", e.Gen, w.ruling)
			}
			if n := len(w.gens[e.Gen].Workers); n < w.cfg.MinWorkers {
				w.fatalf("generation %d begins with %d workers", e.Gen, n)
			}
			w.committed[e.Gen] = true
		case "snapshot":
			w.counted[e.Snapshot] = maps.Clone(w.counts) // asp, ssp: nobody pushes now
		case "boundary":
			if t := w.ctl.next; t == nil || !t.forced() {
				g := w.ctl.gen.Number
				if t == nil { // committed already
					g = w.ctl.prev.Number
				}
				w.bounds[g] = e.Step
				if w.pushed[g] > e.Step {
					w.fatalf("boundary %d, but step %d was pushed under generation %d", e.Step, w.pushed[g], g)
				}
			}
			if w.cfg.Mode != BSP {
				w.checkPushes()
			}
		case "abort":
			clear(w.bounds)
		}
	}
	for _, e := range r.Events {
		w.event(e)
	}
	w.starting = append(w.starting, r.Launch...)
	for _, m := range r.Messages {
		w.note("  %s -> %s gen %d step %d", m.Kind, m.To, m.Gen, m.Step)
		if m.Kind == Dismiss {
			w.shown = append(w.shown, fmt.Sprintf("dismiss %s: %s", m.To, m.Reason))
		}
		if m.Kind == Prepare && m.Source == FromCheckpoint {
			w.restores[m.Gen] = m.Checkpoint
		}
		w.down[m.To] = append(w.down[m.To], m)
	}
	for _, k := range r.Kill {
		w.end(k.Member)
	}
}

func (w *world) event(e Event) {
	w.note("event %s gen %d step %d phase %s member %v state %s %s", e.Kind, e.Gen, e.Step, e.Phase, e.Member, e.State, e.Reason)
	w.tell(e)
	switch e.Kind {
	case StepDone:
		if e.Step != w.history+1 {
			w.fatalf("step %d is done after step %d", e.Step, w.history)
		}
		if e.Missing > 0 && !w.lostAny {
			w.fatalf("step %d lacks %d reports and nobody was lost", e.Step, e.Missing)
		}
		w.history = e.Step
	case StepSkipped:
		if w.cfg.Mode != BSP {
			return
		}
		if !w.bad[e.Step] {
			w.fatalf("step %d was skipped", e.Step)
		}
		if e.Step == w.history+1 {
			w.history = e.Step
		} else if e.Step > w.history || e.Step <= w.history-maxLag {
			w.fatalf("step %d was skipped after step %d", e.Step, w.history)
		}
	case EvaluationRan:
		if w.cfg.Mode == BSP && w.evaluated[e.Step] {
			w.fatalf("version %d was evaluated twice", e.Step)
		}
		w.evaluated[e.Step] = true
	case Committed:
		w.checkMoved(e)
		if dir := w.restores[e.Gen]; dir != "" {
			w.counts = maps.Clone(w.saved[dir].counts)
		}
		if e.Transfer.Source == FromCheckpoint && w.cfg.Mode == BSP {
			for s := range w.evaluated {
				if s > e.Step {
					delete(w.evaluated, s)
				}
			}
		}
		if e.Transfer.Source == FromCheckpoint || e.Transfer.Source == FromSelf && w.cfg.Mode == BSP && e.Step < w.history {
			w.history = e.Step
		}
		if w.cfg.Mode == BSP && e.Transfer.Source != FromPeers && w.history != e.Step {
			w.fatalf("generation %d begins at %d, the history is at %d", e.Gen, e.Step, w.history)
		}
	case Answered:
		w.answers[e.Command]++
	case SnapshotWhole:
		w.snapshotWhole(*e.Snapshot)
	case CheckpointWanted:
		w.told = append(w.told, func() { w.findCheckpoint(e.Gen) })
	}
}

// checkMoved compares what was moved with the difference of the assignments.
func (w *world) checkMoved(e Event) {
	want := int64(0)
	if e.Transfer.Source == FromPeers {
		old, next := w.gens[w.ruling], w.gens[e.Gen]
		stay := Survivors(old, next)
		for _, m := range paa.Diff(old.Blocks, next.Blocks, stay) {
			want += int64(m.Size)
		}
		if len(old.Servers) == len(next.Servers) && want != 0 {
			w.fatalf("%d elements move between the same servers", want)
		}
	}
	if e.Transfer.Elements != want {
		w.fatalf("generation %d moved %d elements, not %d", e.Gen, e.Transfer.Elements, want)
	}
	w.ruling = e.Gen
}

// tell notes an event in the form of the scripts.
func (w *world) tell(e Event) {
	line := ""
	switch e.Kind {
	case PhaseBegan:
		line = fmt.Sprintf("gen %d: %s", e.Gen, e.Phase)
		if e.Phase == phaseHalt || e.Phase == phaseCommit {
			return
		}
	case Committed:
		t := e.Transfer
		line = fmt.Sprintf("gen %d: committed at %d from %s, %v to %v, %d moved", e.Gen, e.Step, t.Source, t.From, t.To, t.Elements)
	case Aborted:
		line = fmt.Sprintf("gen %d: aborted in %s", e.Gen, e.Phase)
	case MemberLost:
		line = fmt.Sprintf("lost %s: %s", e.Member, e.Reason)
	case StepSkipped:
		line = fmt.Sprintf("step %d skipped", e.Step)
	case SnapshotWhole:
		line = fmt.Sprintf("snapshot %d of step %d", e.Snapshot.ID, e.Step)
	case Answered:
		line = fmt.Sprintf("answer %d: %q", e.Command, e.Reason)
	case StateChanged:
		line = strings.TrimSuffix(fmt.Sprintf("%s: %s", e.State, e.Reason), ": ")
	default:
		return
	}
	w.shown = append(w.shown, line)
}

const logTail = 120 // lines shown of a failed world

const maxLag = 2 // steps that can be reported before a veto of the one before

// snapshotWhole checks a snapshot, and writes its manifest some time later.
func (w *world) snapshotWhole(s SnapshotTaken) {
	all := map[elem]uint64{}
	for _, raw := range s.Shards {
		var shard []shardElem
		if err := json.Unmarshal(raw, &shard); err != nil {
			w.t.Fatal(err)
		}
		for _, x := range shard {
			e := elem{x.Block, x.Offset}
			if _, twice := all[e]; twice || w.cfg.Mode == BSP && x.Value != w.value(e, s.Step) {
				w.fatalf("snapshot %d of step %d: element %v is wrong (twice: %v)", s.ID, s.Step, e, twice)
			}
			all[e] = x.Value
		}
	}
	if len(all) != total(w.cfg.Sizes)+total(w.cfg.Aux) {
		w.fatalf("snapshot %d has %d elements", s.ID, len(all))
	}
	dir := fmt.Sprintf("c%d", s.ID)
	w.saved[dir] = save{s.Step, all, w.counted[s.ID], s.Ledger}
	w.checkSaved(s, all)
	problem := ""
	if w.failWrites && w.rng.IntN(4) == 0 {
		problem = "disk full"
	} else {
		w.whole = append(w.whole, dir)
	}
	w.told = append(w.told, func() { w.ctl.SnapshotCommitted(s.ID, dir, problem) })
}

func total(sizes []int) (n int) {
	for _, s := range sizes {
		n += s
	}
	return n
}

func (w *world) send(from Member, m Message) {
	m.From = from
	w.up[from] = append(w.up[from], m)
}

// end ends a member: what it has sent still arrives.
func (w *world) end(m Member) {
	delete(w.servers, m)
	delete(w.workers, m)
	delete(w.down, m)
	w.starting = slices.DeleteFunc(w.starting, func(x Member) bool { return x == m })
}

func sortedMembers[T any](set map[Member]T) []Member {
	var list []Member
	for m := range set {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Member) int { return int(a.Incarnation) - int(b.Incarnation) })
	return list
}

// step lets one thing happen; it reports false if nothing but time can pass.
func (w *world) step() bool {
	var acts []func()
	for _, m := range sortedMembers(w.up) {
		acts = append(acts, func() {
			q := w.up[m]
			if w.up[m] = q[1:]; len(q) == 1 {
				delete(w.up, m)
			}
			w.note("%s %s gen %d step %d", q[0].From, q[0].Kind, q[0].Gen, q[0].Step)
			w.ctl.Receive(q[0])
		})
	}
	for _, m := range sortedMembers(w.down) {
		if w.servers[m] == nil && w.workers[m] == nil {
			if !slices.Contains(w.starting, m) {
				delete(w.down, m)
			}
			continue
		}
		acts = append(acts, func() {
			q := w.down[m]
			if w.down[m] = q[1:]; len(q) == 1 {
				delete(w.down, m)
			}
			if s := w.servers[m]; s != nil {
				s.receive(q[0])
			} else if k := w.workers[m]; k != nil {
				for _, a := range k.member.Receive(q[0]) {
					w.send(m, a)
				}
			}
		})
	}
	for i, m := range w.starting {
		acts = append(acts, func() {
			w.starting = slices.Delete(w.starting, i, i+1)
			if m.Role == Server {
				w.servers[m] = &fakeServer{w: w, member: ServerMember{Self: m}}
			} else {
				w.workers[m] = &fakeWorker{w: w, member: WorkerMember{Self: m, Mode: w.cfg.Mode,
					Epoch: w.cfg.Plan.StepsPerEpoch(), Steps: w.cfg.Steps, Evaluate: w.cfg.Evaluate}}
			}
			w.send(m, Message{Kind: Hello, Addr: m.String()})
		})
	}
	for i, fn := range w.told {
		acts = append(acts, func() { w.told = slices.Delete(w.told, i, i+1); fn() })
	}
	for _, m := range sortedMembers(w.servers) {
		acts = append(acts, w.servers[m].todo()...)
	}
	for _, m := range sortedMembers(w.workers) {
		if act := w.workers[m].todo(); act != nil {
			acts = append(acts, act)
		}
	}
	if len(acts) == 0 {
		return false
	}
	acts[w.rng.IntN(len(acts))]()
	w.drain()
	return true
}

// tick lets time pass: whoever lives says so.
func (w *world) tick() {
	for _, m := range append(sortedMembers(w.servers), sortedMembers(w.workers)...) {
		if p := w.ctl.peers[m]; p != nil && p.hello {
			w.ctl.Receive(Message{Kind: Beat, From: m})
		}
	}
	w.ctl.Tick()
	w.drain()
}

// chaos does something bad, or what a user may do.
func (w *world) chaos() {
	command := func() int64 { w.commands++; w.answers[w.commands] = 0; return w.commands }
	members := append(sortedMembers(w.servers), sortedMembers(w.workers)...)
	switch w.rng.IntN(6) {
	case 0:
		if w.kills == 0 || len(members) == 0 {
			return
		}
		for n := 1 + w.rng.IntN(2); n > 0 && w.kills > 0; n-- { // several at once
			w.kills--
			w.kill(members[w.rng.IntN(len(members))], w.rng.IntN(3) == 0)
		}
	case 1:
		if w.zombies == 0 || len(w.workers) == 0 {
			return
		}
		w.zombies--
		w.lostAny = true
		list := sortedMembers(w.workers)
		m := list[w.rng.IntN(len(list))]
		w.note("zombie %s", m)
		w.ctl.Exited(m, "its link broke") // but it lives on
		w.ctl.out.Kill = nil
	case 2:
		if w.rescales == 0 {
			return
		}
		w.rescales--
		p, k := w.rng.IntN(4), w.rng.IntN(5)
		w.note("rescale %d %d", p, k)
		w.ctl.Rescale(command(), p, k)
	case 3:
		if w.leaves == 0 || len(w.workers) == 0 {
			return
		}
		w.leaves--
		w.lostAny = true // one that leaves while all are halted may not have reported its last step
		list := sortedMembers(w.workers)
		w.send(list[w.rng.IntN(len(list))], Message{Kind: Leaving})
	case 5:
		if w.stop && w.rng.IntN(8) == 0 {
			w.ctl.Stop(true, "enough")
		}
	case 4:
		if w.checkpoints == 0 {
			return
		}
		w.checkpoints--
		w.ctl.Checkpoint(command())
	}
	w.drain()
}

// kill ends a member; silently: only its silence tells.
func (w *world) kill(m Member, silently bool) {
	if w.servers[m] == nil && w.workers[m] == nil {
		return
	}
	w.note("kill %s silently %v", m, silently)
	w.lostAny = true
	w.lostServer = w.lostServer || m.Role == Server
	w.end(m)
	if !silently {
		w.ctl.Exited(m, "killed")
	}
	w.drain()
}

// run plays until the job ends.
func (w *world) run(p, k int) State {
	if err := w.ctl.Start(p, k, nil); err != nil {
		w.t.Fatal(err)
	}
	w.drain()
	quiet := 0
	for n := 0; n < 400000; n++ {
		state, _ := w.ctl.State()
		if state.Final() {
			w.checkEnd(state)
			return state
		}
		if w.rng.IntN(60) == 0 {
			w.chaos()
		}
		if w.rng.IntN(40) != 0 && w.step() {
			quiet = 0
			continue
		}
		w.tick()
		if quiet++; quiet > 100 && state == Paused {
			w.commands++
			w.answers[w.commands] = 0
			w.ctl.Rescale(w.commands, 0, w.cfg.MinWorkers+1)
			w.drain()
			quiet = 0
		}
		if quiet > 3000 {
			w.fatalf("deadlock")
		}
	}
	w.fatalf("the job does not end")
	return ""
}

func (w *world) checkEnd(state State) {
	_, reason := w.ctl.State()
	for id, n := range w.answers {
		if n != 1 {
			w.fatalf("command %d was answered %d times", id, n)
		}
	}
	switch {
	case state == Finished && w.cfg.Mode == BSP && w.history != w.cfg.Steps:
		w.fatalf("finished at step %d of %d", w.history, w.cfg.Steps)
	case state == Broken && !(w.lostServer && strings.Contains(reason, "no checkpoint was taken")) && !(w.failWrites && strings.Contains(reason, "disk full")) &&
		!(w.lostServer && (w.rot || w.failWrites) && strings.Contains(reason, "no checkpoint is whole")):
		w.fatalf("the job failed")
	case state == Finished && w.cfg.Mode != BSP:
		w.checkWork()
	case state == Finished && w.cfg.Evaluate && w.cfg.Mode == BSP:
		for s := int64(1); s <= w.cfg.Steps; s++ {
			if EvaluatesAfter(w.cfg.Plan.StepsPerEpoch(), w.cfg.Steps, s) && !w.evaluated[s] && !w.lostAny {
				w.fatalf("version %d was not evaluated", s)
			}
		}
	}
}
