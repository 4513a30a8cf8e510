package train

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"optimus/compute/optim"
	"optimus/data/order"
	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/internal/level"
	"optimus/internal/rpc"
	"optimus/internal/rundir"
	"optimus/spec"
	"optimus/telemetry"
	"optimus/transport"
)

// Options are the surroundings of a run. The zero value trains j.Workload with
// its state in the default folder.
type Options struct {
	Task   *Task                   // what to train; nil opens j.Workload
	Root   string                  // state folder; "" for rundir's default
	Log    *slog.Logger            // gets what goes to the job's log as well; may be nil
	Notify func(spec.Status)       // called after every step and change; must not block
	Child  []string                // arguments that make this program run RunMember (launch process)
	Slow   func(worker int) func() // tests: what to call once per step of a worker
	Tune   tuning                  // tests: shorter times

	reach   func(*coordinator) // tests: the running job\'s inside
	network transport.Network  // tests: in place of the in-process one
}

// tuning holds the times that tests shorten. Zero values are the defaults.
type tuning struct {
	Tick   time.Duration // of the controller (default 100 ms)
	Beat   time.Duration // between signs of life (default 1 s)
	Retry  time.Duration // see ps.ClientConfig
	Grace  time.Duration // for members to leave at the end (default 5 s)
	Detect time.Duration // a member silent for so long is lost (default 10 s)
	Lease  time.Duration // workers may run on for so long without hearing from the controller (default 500 ms)
}

// Tuning is the type of Options.Tune.
type Tuning = tuning

func (t tuning) withDefaults() tuning {
	for to, dflt := range map[*time.Duration]time.Duration{&t.Tick: 100 * time.Millisecond, &t.Beat: time.Second, &t.Grace: 5 * time.Second, &t.Detect: 10 * time.Second, &t.Lease: 500 * time.Millisecond} {
		if *to <= 0 {
			*to = dflt
		}
	}
	return t
}

// StopAtOnce is the cause of a context that ends a run without a checkpoint.
var StopAtOnce = errAtOnce

// Run trains one job until it ends. When ctx ends it writes a checkpoint and
// stops; the error is then of kind canceled. The result is valid in both cases,
// but zero if ctx ended before the job had begun, of which nothing stays then.
func Run(ctx context.Context, j spec.TrainingJob, o Options) (spec.Result, error) {
	r, err := prepare(j, o)
	if err != nil {
		return spec.Result{}, err
	}
	defer r.close()
	if ctx.Err() != nil {
		return spec.Result{}, failure.E("train", r.layout.Job.Name, failure.Canceled, context.Cause(ctx), "it had not begun: start it again")
	}
	return r.run(ctx)
}

// run is one job with everything open.
type run struct {
	o       Options
	layout  *layout
	task    *Task
	dir     *rundir.Dir
	lock    *rundir.Lock
	journal *rundir.Journal
	file    *os.File
	out     *telemetry.Writer
	log     *os.File
	saves   io.Closer // keeps other runs out of the folder of the checkpoints
	from    *elastic.Newest
	damaged []checkpoint.Info // newer than from and passed over
	past    elastic.Past
	first   int64 // sequence of the run's first checkpoint

	started  bool // there is something to keep in dir
	timeOver bool // the job's own time limit ended it
}

// prepare checks everything that can be checked before anything starts. Where
// that fails, a folder that it made is gone.
func prepare(j spec.TrainingJob, o Options) (r *run, err error) {
	o.Tune = o.Tune.withDefaults()
	r = &run{o: o, task: o.Task}
	if r.task != nil && j.Workload == "" {
		j.Workload = cmp.Or(r.task.Name, "task")
	}
	if err := validate(j); err != nil {
		return nil, err
	}
	if _, err := level.Current(); err != nil {
		return nil, failure.E("train", "", failure.InvalidArgument, err, "")
	}
	if r.task == nil {
		if r.task, err = Open(j); err != nil {
			return nil, err
		}
	}
	if j.Launch == spec.Process {
		if err := launchable(r.task, o); err != nil {
			return nil, err
		}
	}
	if r.layout, err = newLayout(j, r.task); err != nil {
		return nil, err
	}
	if err := r.openDir(); err != nil {
		r.close()
		return nil, err
	}
	if err := r.openFiles(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// validate checks the job alone; a name that is not given is chosen later.
func validate(j spec.TrainingJob) error {
	subject := j.Name
	if j.Name == "" {
		j.Name = "unnamed"
	}
	if err := j.Validate(); err != nil {
		return failure.E("train", subject, failure.InvalidArgument, err, "")
	}
	return nil
}

// launchable refuses processes that could not be members of the job.
func launchable(t *Task, o Options) error {
	given := slices.IndexFunc(t.Params, func(p optim.Param) bool { return p.Init.Kind == optim.Given })
	switch {
	case len(o.Child) == 0:
		return failure.E("train", "launch process", failure.InvalidArgument, errors.New("Options.Child does not say how this program becomes a member"),
			"give arguments with which its main calls RunMember, or set launch inproc")
	case given >= 0:
		return failure.E("train", t.Params[given].Name, failure.InvalidArgument, errors.New("its starting values are in the memory of this process, which servers in others do not share"), "set launch inproc")
	}
	return nil
}

// openDir finds or makes the run's folder and locks it.
func (r *run) openDir() (err error) {
	j := &r.layout.Job
	if j.Name == "" {
		r.dir, err = rundir.CreateUnique(r.o.Root, j.Workload)
	} else {
		r.dir, err = rundir.Create(r.o.Root, j.Name)
	}
	if err != nil {
		return err
	}
	j.Name = r.dir.Name
	if r.lock, err = r.dir.Lock(); err != nil {
		if failure.KindOf(err) != failure.Conflict { // else the folder is another run's
			err = errors.Join(err, r.dir.Discard())
		}
		return err
	}
	r.layout.Checkpoints = r.dir.Checkpoints()
	if j.CheckpointDir != "" {
		if r.layout.Checkpoints, err = filepath.Abs(j.CheckpointDir); err != nil {
			return err
		}
	}
	if err := tryFolder(r.layout.Checkpoints); err != nil {
		return failure.E("train", r.layout.Checkpoints, "", err, "choose a folder that can be written")
	}
	if r.saves, err = rundir.LockFolder(r.layout.Checkpoints); err != nil {
		return err
	}
	return r.resume()
}

// tryFolder makes the folder if need be and tries that a file can be made in it:
// a job that cannot be saved should say so before it trains.
func tryFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".try-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// resume finds the checkpoint to go on from, and checks that it fits.
func (r *run) resume() error {
	j := r.layout.Job
	if j.Resume == "" {
		return r.mayWrite("")
	}
	dir, damaged, err := FindCheckpoint(r.o.Root, j.Resume)
	if err != nil {
		return err
	}
	r.damaged = damaged
	if err := r.mayWrite(dir); err != nil {
		return err
	}
	c, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		return err
	}
	defer c.Close()
	m := c.Manifest()
	if m.Workload != j.Workload {
		return failure.E("resume", dir, failure.Conflict, fmt.Errorf("it is a checkpoint of %s, not of %s", m.Workload, j.Workload), "name the workload it was made with")
	}
	if m.Seed != r.layout.Plan.Seed || m.Batch != r.layout.Plan.Batch {
		return failure.E("resume", dir, failure.Conflict, fmt.Errorf("its seed %d and batch %d decide which examples come next; these are %d and %d", m.Seed, m.Batch, r.layout.Plan.Seed, r.layout.Plan.Batch), "resume with the same --seed and --batch")
	}
	if m.DataFingerprint != "" && m.DataFingerprint != r.task.Fingerprint {
		return failure.E("resume", dir, failure.Conflict, errors.New("the data are not those that the job was trained on"), "give the same --data, and --overfit if it was given")
	}
	if err := m.CheckModel(r.layout.arrays()); err != nil {
		return err
	}
	if slots := r.layout.Optimizer.SlotNames(); !slices.Equal(m.Slots, slots) {
		return failure.E("resume", dir, failure.Conflict, fmt.Errorf("it holds the optimizer's state %v, and optimizer %s has %v", m.Slots, r.layout.Optimizer.Kind, slots), "resume with the --optimizer that it was made with")
	}
	if (m.Mode == string(spec.BSP)) != (j.Mode == spec.BSP) {
		return failure.E("resume", dir, failure.Conflict, fmt.Errorf("it is of a job with mode %s, whose account of the data mode %s cannot use", m.Mode, j.Mode), "resume with --mode "+m.Mode)
	}
	r.from, err = goingOn(dir, m, r.layout.Plan)
	if errors.Is(err, order.ErrOtherPlan) {
		return failure.E("resume", dir, failure.Conflict, err, "")
	}
	if err != nil {
		return failure.E("resume", dir, failure.Corrupt, err, "resume from an older checkpoint")
	}
	if r.from.Ledger != nil {
		if err := r.from.Ledger.SetEpochs(r.layout.Epochs); err != nil {
			return failure.E("resume", dir, failure.InvalidArgument, err, "raise --epochs")
		}
	}
	return nil
}

// mayWrite refuses a folder of checkpoints whose newest one is not of the history
// that the job goes on with: they would be taken for one job's. A job may go on
// in the folder that it resumes from, whoever wrote there.
func (r *run) mayWrite(from string) error {
	j, root := r.layout.Job, r.layout.Checkpoints
	newest, err := checkpoint.Newest(checkpoint.OS{}, root)
	if err != nil {
		return nil // there is none
	}
	var owner struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(newest.Manifest.Spec, &owner) // one that names nobody is taken for the job's own
	switch {
	case owner.Name != "" && owner.Name != j.Name && (from == "" || !sameFolder(filepath.Dir(from), root)):
		return failure.E("train", root, failure.Conflict, fmt.Errorf("it holds the checkpoints of job %s, the newest at step %d", owner.Name, newest.Step),
			"choose another --checkpoint-dir, or go on from there with --resume")
	case from == "":
		return failure.E("train", j.Name, failure.AlreadyExists, fmt.Errorf("the job already has a checkpoint at step %d", newest.Step),
			fmt.Sprintf("go on with --resume %s, or take another --job NAME", j.Name))
	}
	return nil
}

func sameFolder(a, b string) bool {
	x, errx := os.Stat(a)
	y, erry := os.Stat(b)
	return errx == nil && erry == nil && os.SameFile(x, y)
}

// openFiles opens journal, telemetry and log, which go on where a run before
// stopped.
func (r *run) openFiles() error {
	lines, err := rundir.ReadJournal(r.dir.Journal())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	entries := make([]elastic.Entry, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &entries[i]); err != nil {
			return failure.E("read journal", r.dir.Journal(), failure.Corrupt, fmt.Errorf("entry %d: %w", i+1, err), "take another --job NAME and resume from the checkpoint's folder")
		}
	}
	r.past = elastic.Replay(entries)
	if r.journal, err = rundir.OpenJournal(r.dir.Journal()); err != nil {
		return err
	}
	if r.file, err = openTelemetry(r.dir.Telemetry()); err != nil {
		return failure.E("train", r.dir.Telemetry(), "", err, "choose a state folder that can be written")
	}
	r.out = telemetry.NewWriter(r.file, telemetry.Config{IDs: true})
	if r.log, err = os.OpenFile(r.dir.JobLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return failure.E("train", r.dir.JobLog(), "", err, "choose a state folder that can be written")
	}
	r.o.Log = jobLog(r.log, r.o.Log)
	for _, note := range r.layout.Notes {
		r.o.Log.Warn(note)
	}
	for _, s := range r.task.Skipped {
		r.o.Log.Warn("example is left out", "file", s.File, "why", s.Reason)
	}
	for _, d := range r.damaged {
		r.o.Log.Warn("checkpoint is damaged and passed over", "dir", d.Dir, "step", d.Step, "why", d.Err)
	}
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	r.layout.Run = binary.LittleEndian.Uint64(id[:]) | 1
	return r.layout.write(r.dir.Spec())
}

// openTelemetry opens the records of all runs of a job for appending. What a
// killed run left of its last line is cut off, so that the next record begins on
// a line of its own.
func openTelemetry(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	end, err := f.Seek(0, io.SeekEnd)
	whole := end // what ends with a newline
	for block := make([]byte, 64<<10); err == nil && whole > 0; {
		from := max(0, whole-int64(len(block)))
		block = block[:whole-from]
		if _, err = f.ReadAt(block, from); err != nil {
			break
		}
		n := bytes.LastIndexByte(block, '\n') + 1
		whole = from + int64(n)
		if n > 0 {
			break
		}
	}
	if err == nil && whole < end {
		err = f.Truncate(whole)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (r *run) close() {
	if r.out != nil {
		r.out.Close()
	}
	if r.file != nil {
		r.file.Close()
	}
	if r.journal != nil {
		r.journal.Close()
	}
	if r.log != nil {
		r.log.Close()
	}
	if r.saves != nil {
		r.saves.Close()
	}
	if r.lock != nil { // else the folder is another run's
		if !r.started {
			r.dir.Discard()
		}
		r.lock.Unlock()
	}
}

// controller makes the job's decision maker.
func (r *run) controller() (*elastic.Controller, error) {
	l, j, t := r.layout, r.layout.Job, r.o.Tune
	next, err := checkpoint.NextSequence(checkpoint.OS{}, l.Checkpoints)
	if err != nil {
		return nil, err
	}
	r.first = max(next, r.past.Snapshot+1)
	least, _ := j.Workers.Bounds()
	if j.Workers.Min == 0 {
		least = 1
	}
	ticks := func(d time.Duration) int { return max(1, int(d/t.Tick)) }
	skips := j.NonFiniteLimit
	return elastic.NewController(elastic.Config{Tick: t.Tick, Mode: l.mode(), Plan: l.Plan, Steps: l.Steps, Epochs: l.Epochs, Chunk: 4 * l.Plan.Batch,
		Rule: string(j.Assignment), Sizes: sizes(l.Params), Aux: sizes(l.Aux), MinWorkers: least, Evaluate: l.Validation > 0,
		CheckpointEvery: int64(j.CheckpointEvery), StopOnNonFinite: j.NonFinite == spec.Stop, SkipLimit: skips,
		Detect: ticks(t.Detect), StartLimit: ticks(2 * time.Minute), PhaseLimit: ticks(2 * time.Minute), LeaseTicks: ticks(t.Lease),
		FirstGeneration: r.past.Generation + 1, FirstIncarnation: r.past.Incarnation + 1, FirstSnapshot: r.first})
}

// run starts the coordinator and waits for the job's end.
func (r *run) run(ctx context.Context) (spec.Result, error) {
	l := r.layout
	ctl, err := r.controller()
	if err != nil {
		return spec.Result{}, err
	}
	var from int64
	if r.from != nil {
		from = r.from.Step
	}
	c := &coordinator{layout: l, task: r.task, ctl: ctl, journal: r.journal, log: r.o.Log, inputs: make(chan func(), 256), done: make(chan struct{}),
		links: map[elastic.Member]*queue{}, running: map[elastic.Member]bool{}, answers: map[int64]func(error){},
		from: r.from, first: r.first, rec: newRecorder(l, r.task, r.out, r.o.Notify, from), watch: logEvents(r.o.Log)}
	socket, err := r.dir.Socket()
	if err != nil {
		return spec.Result{}, err
	}
	server, err := rpc.Serve(socket, &control{c: c})
	if err != nil {
		return spec.Result{}, err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), r.o.Tune.Grace)
		defer cancel()
		server.Close(end)
	}()
	c.starter = r.starter(c, socket)
	defer c.starter.close()
	if err := ctl.Start(l.Job.Servers.Count, l.Job.Workers.Count, r.from); err != nil {
		return spec.Result{}, failure.E("train", l.Job.Name, failure.InvalidArgument, err, "")
	}
	if r.o.reach != nil {
		r.o.reach(c)
	}
	if d := time.Duration(l.Job.MaxTime); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, fmt.Errorf("%w: %v", errTimeOver, d))
		defer cancel()
	}
	r.started = true
	r.o.Log.Info("run begins", "job", l.Job.Name, "pid", os.Getpid(), "workload", l.Job.Workload, "mode", l.Job.Mode, "launch", l.Job.Launch, "after_step", from)
	err = c.run(ctx, r.o.Tune.Tick, r.o.Tune.Grace)
	if errors.Is(context.Cause(ctx), errTimeOver) {
		r.timeOver = true
	}
	return r.end(c, err)
}

// errTimeOver is the cause of a stop by the job's own time limit, which is an
// end that was asked for.
var errTimeOver = errors.New("the time limit is over")

func (r *run) starter(c *coordinator, socket string) starter {
	if r.layout.Job.Launch != spec.Process {
		return newGoroutines(c, r.o)
	}
	return newProcesses(c, r.o, r.dir, socket)
}

// end writes the last record and turns the final state into the result.
func (r *run) end(c *coordinator, err error) (spec.Result, error) {
	state, reason := c.ctl.State()
	result := c.rec.result()
	rec := telemetry.End{Time: time.Now(), Generation: int(ifGeneration(c.ctl)), Step: c.ctl.Done(), Epoch: r.layout.Plan.Epoch(max(c.ctl.Done(), 1)),
		Examples: c.rec.examples, Loss: telemetry.Float(result.Loss), Seconds: result.WallS, ParamsSHA256: result.ParamsSHA256}
	switch {
	case err != nil:
	case state == elastic.Broken:
		err = failure.E("train", r.layout.Job.Name, failure.LostMember, errors.New(reason), "logs are in "+r.dir.Logs())
	case state == elastic.Stopped && r.timeOver:
	case state == elastic.Stopped:
		err = failure.E("train", r.layout.Job.Name, failure.Canceled, errors.New(reason), r.advice())
	}
	rec.Reason = string(state)
	if err != nil {
		rec.Error = err.Error()
	}
	r.out.Write(rec)
	if werr := r.out.Flush(); werr != nil && err == nil {
		err = failure.E("write telemetry", r.dir.Telemetry(), "", werr, "free space")
	}
	return result, err
}

// advice says how a job that was stopped can go on.
func (r *run) advice() string {
	if advice, ok := r.layout.resumable(); ok {
		return advice
	}
	if r.from != nil {
		return "go on with --resume " + r.from.Dir
	}
	return "nothing was saved: start it anew"
}

func ifGeneration(c *elastic.Controller) int {
	if g := c.Generation(); g != nil {
		return g.Number
	}
	return 0
}

func newGoroutines(c *coordinator, o Options) *goroutines {
	network := o.network
	if network == nil {
		network = transport.InProcess()
	}
	g := &goroutines{c: c, network: network, log: o.Log, tune: o.Tune, cancel: map[elastic.Member]context.CancelCauseFunc{}}
	if o.Slow != nil {
		g.slow = func(m elastic.Member) func() { return o.Slow(m.ID) }
	}
	return g
}
