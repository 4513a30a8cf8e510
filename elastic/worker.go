package elastic

// Task is what a worker does next.
type Task string

// The tasks.
const (
	Wait      Task = "wait"     // nothing until another message comes
	Train     Task = "train"    // compute step Step
	TrainWork Task = "work"     // train the chunk Work (asp, ssp)
	AskWork   Task = "ask"      // ask for a chunk, then wait (asp, ssp)
	Idle      Task = "idle"     // no chunk for now, but the clock must move (ssp)
	Assess    Task = "evaluate" // evaluate version Step
	Quit      Task = "quit"
)

// Directive tells a worker's loop what to do. Two directives are the same
// activity if and only if they are equal.
type Directive struct {
	Task Task
	Step int64
	Pull *Generation // whose servers have the version before the step
	Push *Generation // whose servers get the gradients
	Work *Work
	Why  string
}

// WorkerMember is the worker's side of the protocol: messages of the controller
// and the loop's own progress in, the next directive out.
type WorkerMember struct {
	Self  Member
	Mode  Mode
	Epoch int64 // steps of one epoch
	Steps int64 // of the job
	// Evaluate is the job's setting: see EvaluatesAfter.
	Evaluate bool

	gen      *Generation // rules
	next     *Generation // prepared
	smooth   bool
	switched bool        // boundary is known
	boundary int64       // of next
	late     *Generation // the one before, as long as its last step is not acknowledged
	lease    int64
	done     int64 // last step pushed and acknowledged
	assess   int64 // version that waits for its evaluation; 0 for none
	work     *Work
	asked    bool
	pushing  Directive // whose push is under way (asp, ssp)
	owed     int       // generation of a Halt that is answered once it is made; 0 for none
	halted   bool
	quit     bool
	why      string
}

// Receive takes a message and returns the answers to send.
func (w *WorkerMember) Receive(m Message) (answers []Message) {
	switch m.Kind {
	case Prepare:
		w.next, w.smooth, w.switched = m.Next, m.Smooth, false
		if m.Old != nil && w.gen == nil {
			w.gen = m.Old // a newcomer pulls its first version from the old owners
		}
		answers = append(answers, Message{Kind: Prepared, Gen: m.Gen})
	case Switch:
		if w.next != nil && w.next.Number == m.Gen {
			w.switched, w.boundary = true, m.Step
		}
	case Commit:
		w.commit(m)
	case Drop:
		if w.next != nil && w.next.Number == m.Gen {
			w.next, w.switched = nil, false
			if w.gen != nil && w.gen.Rank(w.Self) < 0 {
				w.gen = nil
			}
		}
	case Halt:
		w.halted, w.late = true, nil
		if w.Mode == BSP {
			break // the step under way is void and made again
		}
		w.work, w.asked = nil, false
		if m.Source == FromCheckpoint {
			w.pushing = Directive{} // it may wait for a server that is gone, and its pieces will be replaced
		}
		w.owed = m.Gen
		answers = w.drained()
	case Resume:
		if w.gen != nil && w.gen.Number == m.Gen {
			w.halted = false
		}
	case Lease:
		if w.gen != nil && w.gen.Number == m.Gen {
			w.lease = max(w.lease, m.Step)
		}
	case GiveWork:
		w.work, w.asked = m.Chunk, false
	case Evaluate:
		w.assess = max(m.Step, 1)
	case Dismiss:
		w.quit, w.why = true, m.Reason
	}
	return answers
}

func (w *WorkerMember) commit(m Message) {
	if w.next == nil || w.next.Number != m.Gen {
		return
	}
	if w.gen != nil && w.gen.Rank(w.Self) >= 0 && w.next.Rank(w.Self) < 0 {
		return // leaves: stays in the old generation until dismissed
	}
	forced := w.halted || !w.smooth
	was := w.gen
	w.gen, w.next, w.switched, w.halted, w.late = w.next, nil, false, false, nil
	// The commit allows one step: a smooth switch has allowed it already, and it
	// may be under way.
	w.lease = min(m.Step+1, w.Steps)
	if forced {
		w.done, w.assess = m.Step, 0
	}
	if w.done < m.Step {
		if was != nil && was.Rank(w.Self) >= 0 && !m.Cut {
			w.late = was // the servers have all of the boundary's step: only their answers are on the way
		} else {
			w.done = m.Step
		}
	}
	if m.Evaluate {
		w.assess = m.Step
	}
	w.asked = false
}

// Did tells that step was pushed and acknowledged, and whether its version is
// evaluated next.
func (w *WorkerMember) Did(step int64) {
	w.done = step
	w.late = nil
	if w.Evaluate && EvaluatesAfter(w.Epoch, w.Steps, step) {
		w.assess = step
	}
}

// Assessed tells that the evaluation is reported.
func (w *WorkerMember) Assessed() { w.assess = 0 }

// Pushing asks to begin the push of directive d, and is told whether d still
// stands. In modes asp and ssp each piece applies a push when it comes, so a push
// that has begun is made on all pieces: until Pushed, Next stays at d. Only a
// dismissal and the loss of a server, after which all pieces are replaced, cut it
// off. A synchronous step is made again if it is cut off, so it may be at any time.
func (w *WorkerMember) Pushing(d Directive) bool {
	if w.Mode == BSP {
		return true
	}
	if w.Next() != d {
		return false
	}
	w.pushing = d
	return true
}

// Pushed tells that every piece has acknowledged the push and that it is
// reported. It returns the answers that waited for it.
func (w *WorkerMember) Pushed() []Message {
	w.pushing = Directive{}
	return w.drained()
}

// drained answers a Halt unless a push is under way.
func (w *WorkerMember) drained() []Message {
	if w.owed == 0 || w.pushing != (Directive{}) {
		return nil
	}
	gen := w.owed
	w.owed = 0
	return []Message{{Kind: Halted, Gen: gen}}
}

// Asked tells that a chunk was asked for; Worked that the one in hand is done.
func (w *WorkerMember) Asked() { w.asked = true }
func (w *WorkerMember) Worked() {
	if w.work != nil { // else a halt took it back in the meantime
		w.work, w.asked = nil, true
	}
}

// Next returns what to do now.
func (w *WorkerMember) Next() Directive {
	switch {
	case w.quit:
		return Directive{Task: Quit, Why: w.why}
	case w.pushing != Directive{}:
		return w.pushing
	case w.halted:
		return Directive{Task: Wait, Why: "halted for a recovery"}
	case w.gen == nil:
		return Directive{Task: Wait, Why: "the first generation"}
	}
	if w.late != nil {
		return Directive{Task: Train, Step: w.done + 1, Pull: w.late, Push: w.late}
	}
	member := w.gen.Rank(w.Self) >= 0
	if w.assess > 0 && member {
		return Directive{Task: Assess, Step: w.assess, Pull: w.gen}
	}
	if w.Mode != BSP {
		return w.nextWork(member)
	}
	if w.switched && w.smooth {
		if !member || w.done >= w.boundary {
			return w.across(member)
		}
	}
	if member && w.done < w.lease {
		return Directive{Task: Train, Step: w.done + 1, Pull: w.gen, Push: w.gen}
	}
	return Directive{Task: Wait, Why: "a longer lease"}
}

// across is the first step of the next generation, made before its commit: it
// pulls from the old owners and pushes to the new ones.
func (w *WorkerMember) across(member bool) Directive {
	switch {
	case w.next.Rank(w.Self) < 0:
		return Directive{Task: Wait, Why: "to be dismissed"}
	case w.boundary >= w.Steps:
		return Directive{Task: Wait, Why: "the end of the job"}
	case w.done > w.boundary:
		return Directive{Task: Wait, Why: "the commit of the next generation"}
	}
	return Directive{Task: Train, Step: w.boundary + 1, Pull: w.gen, Push: w.next}
}

func (w *WorkerMember) nextWork(member bool) Directive {
	switch {
	case !member:
		return Directive{Task: Wait, Why: "the commit of its first generation"}
	case w.work != nil:
		return Directive{Task: TrainWork, Work: w.work, Pull: w.gen, Push: w.gen}
	case !w.asked:
		return Directive{Task: AskWork, Pull: w.gen}
	}
	if w.Mode == SSP {
		return Directive{Task: Idle, Pull: w.gen, Push: w.gen}
	}
	return Directive{Task: Wait, Why: "a chunk of the data"}
}
