package train

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"optimus/compute"
	"optimus/elastic"
	"optimus/spec"
	"optimus/telemetry"
)

// recorder turns the controller's events into telemetry, the job's status and
// its result. The coordinator's goroutine writes it; anyone may read the status.
type recorder struct {
	layout  *layout
	skipped []spec.Skipped
	metric  compute.Metric
	out     *telemetry.Writer
	notify  func(spec.Status) // after each change; may be nil

	mu        sync.Mutex
	status    spec.Status
	members   map[elastic.Member]*spec.Member
	watch     chan struct{} // closed and replaced at each change
	sha       string
	savedID   int64 // of the last checkpoint
	savedStep int64
	unsaved   string // why the last checkpoint was not written, as a reason; empty if it was
	stale     int64  // largest staleness seen

	started  time.Time
	last     time.Time // of the last step
	pace     float64   // smoothed seconds of a step
	rate     float64   // smoothed examples per second
	examples int64
	loss     float64 // smoothed
	phases   map[int][]mark
	pending  []*pending
	answers  map[int64]spec.RescaleReport // by command
	trained  int64                        // examples of this run
}

type mark struct {
	phase elastic.Phase
	at    time.Time
}

// pending is a committed rescale whose pause is known only after the first step
// of the new generation.
type pending struct {
	report   spec.RescaleReport
	boundary time.Time
	after    int64
	command  int64
}

func newRecorder(l *layout, t *Task, out *telemetry.Writer, notify func(spec.Status), from int64) *recorder {
	now := time.Now()
	r := &recorder{layout: l, skipped: t.Skipped, metric: t.Metric, out: out, notify: notify, members: map[elastic.Member]*spec.Member{}, watch: make(chan struct{}),
		started: now, last: now, phases: map[int][]mark{}, answers: map[int64]spec.RescaleReport{}}
	r.examples = l.examples(from)
	r.status = spec.Status{Job: l.Job.Name, Workload: l.Job.Workload, State: spec.Starting, Steps: int(min(l.Steps, 1<<31)), Epochs: l.Epochs,
		Step: int(from), Epoch: float64(r.examples) / float64(max(l.Plan.Examples, 1)), Updated: now, Members: []spec.Member{}, Rescales: []spec.RescaleReport{}, Notes: l.Notes}
	if l.Job.Mode != spec.BSP && l.Job.Steps == 0 {
		r.status.Steps = 0
	}
	return r
}

// Status returns the job as it is now, and a channel that is closed when that
// changes.
func (r *recorder) Status() (spec.Status, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	s.Rescales = slices.Clone(s.Rescales)
	s.Members = []spec.Member{}
	for _, m := range slices.SortedFunc(maps.Keys(r.members), func(a, b elastic.Member) int {
		if a.Role != b.Role {
			if a.Role < b.Role {
				return -1
			}
			return 1
		}
		return a.ID - b.ID
	}) {
		s.Members = append(s.Members, *r.members[m])
	}
	return s, r.watch
}

// changed publishes the status; the caller holds no lock.
func (r *recorder) changed() {
	r.mu.Lock()
	r.status.Updated = time.Now()
	close(r.watch)
	r.watch = make(chan struct{})
	r.mu.Unlock()
	if r.notify != nil {
		s, _ := r.Status()
		r.notify(s)
	}
}

func (r *recorder) hello(m elastic.Message) {
	r.mu.Lock()
	r.members[m.From] = &spec.Member{Role: string(m.From.Role), ID: m.From.ID, Incarnation: m.From.Incarnation, PID: m.PID, Addr: m.Addr, State: "joining"}
	r.mu.Unlock()
}

// NotSaved begins the reason in the status of a job whose last checkpoint could
// not be written. It trains on.
const NotSaved = "the last checkpoint was not written: "

// waiting shows whom a transition waits for, as long as it does; why is the
// reason of the state. A job that has neither tells if it could not be saved.
func (r *recorder) waiting(whom, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Reason = cmp.Or(whom, why, r.unsaved)
}

func (r *recorder) write(rec telemetry.Record) { r.out.Write(rec) } // its first error comes back from Close
func (r *recorder) flush()                     { r.out.Flush() }

func (r *recorder) event(e elastic.Event, gen *elastic.Generation) {
	switch e.Kind {
	case elastic.StepDone:
		r.step(e)
	case elastic.EvaluationRan:
		r.evaluation(e)
	case elastic.PhaseBegan:
		r.phases[e.Gen] = append(r.phases[e.Gen], mark{e.Phase, time.Now()})
		return
	case elastic.Committed:
		r.committed(e)
	case elastic.Aborted:
		delete(r.phases, e.Gen)
		r.write(telemetry.Transition{Time: time.Now(), Generation: e.Gen, Step: int64(r.status.Step), Error: e.Reason})
	case elastic.MemberLost:
		r.write(telemetry.Lost{Time: time.Now(), Generation: e.Gen, Step: int64(r.status.Step), Member: recorded(e.Member, 0), Cause: e.Reason})
		r.mu.Lock()
		delete(r.members, e.Member)
		r.mu.Unlock()
	case elastic.StepSkipped:
		r.write(telemetry.Skipped{Time: time.Now(), Generation: e.Gen, Step: e.Step, Worker: e.Member.ID, Cause: e.Reason})
	case elastic.SnapshotLost:
		r.write(telemetry.Checkpoint{Time: time.Now(), Generation: e.Gen, Step: e.Step, Error: e.Reason})
		r.mu.Lock()
		r.unsaved = NotSaved + e.Reason
		r.status.Reason = r.unsaved
		r.mu.Unlock()
	case elastic.StateChanged:
		r.mu.Lock()
		r.status.State, r.status.Reason = stateOf(e.State), e.Reason
		r.mu.Unlock()
	default:
		return
	}
	r.changed()
}

func recorded(m elastic.Member, pid int) telemetry.Member {
	return telemetry.Member{Role: string(m.Role), ID: m.ID, Incarnation: int64(m.Incarnation), PID: pid}
}

// smooth is the weight of a new value in a smoothed one.
const smooth = 0.1

func (r *recorder) step(e elastic.Event) {
	now := time.Now()
	var loss, weight float64
	rec := telemetry.Step{Time: now, Generation: e.Gen, Step: e.Step, M: r.layout.Plan.Batch, Servers: e.Servers, Workers: len(e.Workers),
		LearningRate: r.layout.Optimizer.Rate(e.Step), Epoch: e.Epoch}
	for _, s := range e.Reports {
		loss += s.Loss
		weight += float64(s.Weight)
		rec.BatchExamples += len(s.IDs)
		rec.IDs = append(rec.IDs, s.IDs...)
		p := telemetry.Phases{Pull: s.Pull, Compute: s.Compute, Push: s.Push, Total: s.Pull + s.Compute + s.Push}
		rec.PerWorker = append(rec.PerWorker, p)
		rec.Phases = telemetry.Phases{Pull: max(rec.Phases.Pull, p.Pull), Compute: max(rec.Phases.Compute, p.Compute),
			Push: max(rec.Phases.Push, p.Push), Total: max(rec.Phases.Total, p.Total)}
	}
	if e.Missing > 0 {
		// A worker died after its push was applied and before its report came.
		// The version exists, so it holds the whole batch.
		rec.IDs = r.layout.batch(e.Step)
		rec.BatchExamples = len(rec.IDs)
	}
	mean := 0.0
	if weight > 0 {
		mean = loss / weight
	}
	r.examples += int64(rec.BatchExamples)
	r.trained += int64(rec.BatchExamples)
	rec.Examples, rec.Weight, rec.Loss = r.examples, int64(weight), telemetry.Float(mean)
	r.write(rec)

	r.staleness(e)

	took := now.Sub(r.last).Seconds()
	r.last = now
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pace == 0 {
		r.pace, r.loss = took, mean
		r.rate = float64(rec.BatchExamples) / max(took, 1e-9)
	}
	r.pace += smooth * (took - r.pace)
	r.loss += smooth * (mean - r.loss)
	r.rate += smooth * (float64(rec.BatchExamples)/max(took, 1e-9) - r.rate)
	s := &r.status
	s.Step, s.Loss, s.ExamplesPerS = int(e.Step), spec.Number(r.loss), spec.Number(float64(r.trained)/max(now.Sub(r.started).Seconds(), 1e-9))
	s.Epoch = float64(r.examples) / float64(r.layout.Plan.Examples)
	if r.layout.Job.Mode == spec.BSP {
		s.ETAS = spec.Number(float64(r.layout.Steps-e.Step) * r.pace)
	} else if left := float64(r.layout.Plan.Examples)*float64(r.layout.Epochs) - float64(r.examples); r.layout.Job.Steps == 0 {
		s.ETAS = spec.Number(left / max(float64(s.ExamplesPerS), 1e-9))
	} else {
		s.ETAS = spec.Number(float64(r.layout.Job.Steps-int(e.Step)) * r.pace)
	}
	for i, id := range e.Workers {
		for m, shown := range r.members {
			if m.Role == elastic.Worker && m.ID == id {
				shown.Step, shown.Idle = int(e.Step), e.Reports[i].Weight == 0
				shown.State = "training"
				if shown.Idle {
					shown.State = "idle"
				}
			}
		}
	}
	r.finishPending(e.Step, now)
}

// staleness records, in ssp, each time that parameters were staler than ever
// before: Counts ends with the number of steps that they lagged.
func (r *recorder) staleness(e elastic.Event) {
	for _, s := range e.Reports {
		if s.Staleness > r.stale {
			r.stale = s.Staleness
			counts := make([]int64, s.Staleness+1)
			counts[s.Staleness] = 1
			r.write(telemetry.Staleness{Time: time.Now(), Generation: e.Gen, Step: e.Step, Bound: r.layout.Job.Staleness, Counts: counts})
		}
	}
}

// finishPending adds the pause to rescales whose first step is done.
func (r *recorder) finishPending(step int64, now time.Time) {
	for _, p := range r.pending {
		if step < p.after {
			return
		}
		p.report.PauseMS = max(0, (now.Sub(p.boundary).Seconds()-r.pace)*1000)
		r.status.Rescales = append(r.status.Rescales, p.report)
		r.answers[p.command] = p.report
		r.pending = r.pending[1:]
		r.write(telemetry.Transition{Time: now, Generation: int(p.report.Generation), Step: int64(p.report.Step),
			From: telemetry.Size{Servers: p.report.From[0], Workers: p.report.From[1]}, To: telemetry.Size{Servers: p.report.To[0], Workers: p.report.To[1]},
			PhasesMS: phaseTimes(p.report.Phases), PauseMS: p.report.PauseMS, Elements: p.report.ElementsMoved, Bytes: p.report.BytesMoved, Digest: p.report.StateDigest})
	}
}

func phaseTimes(list []spec.Phase) map[string]float64 {
	m := map[string]float64{}
	for _, p := range list {
		m[p.Name] += p.MS
	}
	return m
}

func (r *recorder) evaluation(e elastic.Event) {
	var sum compute.Result
	for _, s := range e.Reports {
		share := compute.Result{Loss: s.Loss, Weight: s.Weight}
		copy(share.Counts[:], s.Counts)
		sum.Add(share)
	}
	if sum.Weight == 0 {
		return
	}
	figures, metrics := r.metric.Figures(sum), map[string]telemetry.Float{}
	for _, f := range figures {
		metrics[f.Name] = telemetry.Float(f.Value)
	}
	r.write(telemetry.Evaluation{Time: time.Now(), Generation: e.Gen, Step: e.Step, Epoch: r.layout.Plan.Epoch(max(e.Step, 1)), Set: "validation",
		Examples: sum.Weight, Loss: telemetry.Float(sum.Mean()), Metric: string(r.metric), Metrics: metrics})
	r.mu.Lock()
	if len(figures) > 0 {
		r.status.Metric = &spec.Metric{Name: figures[0].Name, Value: spec.Number(figures[0].Value), Loss: spec.Number(sum.Mean())}
	}
	r.last = time.Now() // the evaluation is not part of a step
	r.mu.Unlock()
}

func (r *recorder) committed(e elastic.Event) {
	now := time.Now()
	t := e.Transfer
	g := t.Generation
	rec := telemetry.GenerationStart{Time: now, Number: g.Number, Step: e.Step, Servers: len(g.Servers), Workers: len(g.Workers), Source: telemetry.SourceTransition}
	switch t.Source {
	case elastic.FromInit:
		rec.Source = telemetry.SourceInit
	case elastic.FromCheckpoint:
		rec.Source = telemetry.SourceCheckpoint
	}
	r.mu.Lock()
	for _, list := range [][]elastic.Address{g.Servers, g.Workers} {
		for _, a := range list {
			pid := os.Getpid()
			if m := r.members[a.Member]; m != nil {
				m.State = "running"
				if m.PID != 0 {
					pid = m.PID
				}
			}
			rec.Members = append(rec.Members, recorded(a.Member, pid))
		}
	}
	for m := range r.members {
		if !g.Has(m) {
			delete(r.members, m)
		}
	}
	r.status.Servers, r.status.Workers, r.status.Generation = len(g.Servers), len(g.Workers), uint64(g.Number)
	if e.Step < int64(r.status.Step) { // went back: what came after is void
		r.examples = r.layout.examples(e.Step)
		r.status.Step = int(e.Step)
	}
	if t.From != t.To && t.Source == elastic.FromPeers {
		report := spec.RescaleReport{Step: int(e.Step), From: t.From, To: t.To, Generation: uint64(g.Number), ElementsMoved: t.Elements,
			BytesMoved: t.Bytes + t.AuxBytes, AuxBytesMoved: t.AuxBytes, Moves: t.Moves, Phases: r.phaseReport(g.Number, now),
			StateDigest: fmt.Sprintf("%016x%016x", t.Params, t.State)}
		p := &pending{report: report, boundary: now, after: e.Step + 1, command: t.Command}
		if e.Step == int64(r.status.Step) {
			p.boundary = r.last
		}
		r.pending = append(r.pending, p)
		if e.Step >= r.layout.Steps {
			r.finishPending(p.after, r.last)
		}
	}
	r.mu.Unlock()
	delete(r.phases, g.Number)
	r.write(rec)
}

func (r *recorder) phaseReport(gen int, now time.Time) []spec.Phase {
	var list []spec.Phase
	marks := r.phases[gen]
	for i, m := range marks {
		end := now
		if i+1 < len(marks) {
			end = marks[i+1].at
		}
		list = append(list, spec.Phase{Name: string(m.phase), MS: end.Sub(m.at).Seconds() * 1000})
	}
	return list
}

func (r *recorder) checkpoint(s elastic.SnapshotTaken, dir, sha string, err error) {
	rec := telemetry.Checkpoint{Time: time.Now(), Generation: s.Gen, Step: s.Step, Sequence: s.ID, Dir: dir, ParamsSHA256: sha}
	if err != nil {
		rec.Error = err.Error()
	}
	r.write(rec)
	if err == nil {
		r.mu.Lock()
		if s.ID >= r.savedID { // a later one may have been quicker
			r.status.LastCheckpoint, r.sha, r.savedStep, r.savedID = dir, sha, s.Step, s.ID
		}
		if r.status.Reason == r.unsaved {
			r.status.Reason = ""
		}
		r.unsaved = ""
		r.mu.Unlock()
	}
	r.changed()
}

// rescaled returns the report of a command's rescale once its first step is
// done; open tells that one is committed and waits for that step.
func (r *recorder) rescaled(command int64) (report *spec.RescaleReport, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rep, ok := r.answers[command]; ok {
		return &rep, false
	}
	for _, p := range r.pending {
		open = open || p.command == command
	}
	return nil, open
}

// saved returns the folder and the step of the last checkpoint.
func (r *recorder) saved() (string, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status.LastCheckpoint, r.savedStep
}

// result is what the run ends with.
func (r *recorder) result() spec.Result {
	s, _ := r.Status()
	return spec.Result{Job: s.Job, Workload: s.Workload, Mode: r.layout.Job.Mode, Servers: s.Servers, Workers: s.Workers, Steps: s.Step,
		Epochs: s.Epoch, Loss: s.Loss, Metric: s.Metric, WallS: time.Since(r.started).Seconds(), ExamplesPerS: s.ExamplesPerS,
		Rescales: s.Rescales, Checkpoint: s.LastCheckpoint, ParamsSHA256: r.sha, Skipped: r.skipped}
}
