package elastic

// leases bounds how far workers may run without hearing from the controller. A
// boundary that is at least granted can be chosen without asking anybody.
type leases struct {
	start   int64 // boundary of the ruling generation
	granted int64
	window  int64 // steps ahead of the job
	mark    struct {
		tick int
		step int64
	}
}

// restart begins a generation: its commit allows the workers until, the step
// that a smooth transition has them begin before the commit.
func (l *leases) restart(boundary, until int64, now int) {
	l.start, l.granted = boundary, until
	l.mark.tick, l.mark.step = now, boundary
}

const (
	leaseSpan  = 10 // ticks over which the speed is measured
	leaseLeast = 2
	leaseMost  = 256
)

// tickLease adapts the window to the speed, so that a lease lasts about
// LeaseTicks whether a step takes a millisecond or a minute.
func (c *Controller) tickLease() {
	l := &c.lease
	if span := c.now - l.mark.tick; span >= leaseSpan {
		ahead := (c.step - l.mark.step) * int64(c.cfg.LeaseTicks) / int64(span)
		l.window = min(max(ahead, leaseLeast), leaseMost)
		l.mark.tick, l.mark.step = c.now, c.step
	}
	c.grant()
}

// grant lets the workers run further ahead, unless a boundary is fixed.
func (c *Controller) grant() {
	if c.cfg.Mode != BSP || c.gen == nil || c.state.Final() || c.next != nil && (c.next.phase == phaseSwitch || c.next.forced()) {
		return
	}
	c.schedulePeriodic()
	l := &c.lease
	until := min(c.step+l.window, c.cfg.Steps, c.snapshotBound())
	if until <= l.granted || l.granted-c.step > l.window/2 {
		return
	}
	l.granted = until
	for _, a := range c.gen.Workers {
		c.send(Message{Kind: Lease, To: a.Member, Gen: c.gen.Number, Step: until})
	}
}

// get returns the report of a worker.
func (s *shares) get(m Member) (Report, bool) {
	if s == nil {
		return Report{}, false
	}
	r, ok := s.reports[m]
	return r, ok
}

// generation finds a generation whose reports may still come.
func (c *Controller) generation(number int) *Generation {
	for _, g := range []*Generation{c.gen, c.prev} {
		if g != nil && g.Number == number {
			return g
		}
	}
	if c.next != nil && c.next.gen.Number == number {
		return c.next.gen
	}
	return nil
}

// belongs reports whether generation gen makes version step in the surviving
// history. A boundary's version belongs to both sides.
func (c *Controller) belongs(gen int, step int64) bool {
	switch {
	case c.gen != nil && gen == c.gen.Number:
		return step >= c.lease.start
	case c.prev != nil && gen == c.prev.Number:
		return step <= c.lease.start
	case c.next != nil && gen == c.next.gen.Number:
		return c.next.phase == phaseSwitch && step > c.next.boundary
	}
	return false
}

// collect files a worker's report; another generation's reports of the same
// step are void.
func (c *Controller) collect(into map[int64]*shares, m Message) {
	if g := c.generation(m.Gen); g == nil || g.Rank(m.From) < 0 || m.Report == nil {
		return
	}
	s := into[m.Step]
	if s == nil || s.gen < m.Gen {
		s = &shares{gen: m.Gen, reports: map[Member]Report{}}
		into[m.Step] = s
	}
	if s.gen == m.Gen {
		s.reports[m.From] = *m.Report
	}
}

// whole returns a step's reports in rank order once all have come.
func (c *Controller) whole(s *shares) (reports []Report, workers []int, ok bool) {
	if s == nil {
		return nil, nil, false
	}
	g := c.generation(s.gen)
	if g == nil || g != c.gen && c.next != nil && g == c.next.gen {
		return nil, nil, false
	}
	for _, a := range g.Workers {
		r, ok := s.reports[a.Member]
		if !ok {
			return nil, nil, false
		}
		reports, workers = append(reports, r), append(workers, a.ID)
	}
	return reports, workers, true
}

func (c *Controller) progress(p *peer, m Message) {
	if c.cfg.Mode != BSP {
		c.asyncProgress(p, m)
		return
	}
	if m.Step <= c.step || !c.belongs(m.Gen, m.Step) {
		return
	}
	p.done, p.doneGen = m.Step, m.Gen
	p.idle = m.Report != nil && m.Report.Weight == 0
	if c.next != nil {
		c.next.stalled = 0
	}
	c.collect(c.shares, m)
	c.completeSteps()
	c.grant()
	c.settle()
}

// completeSteps moves the job forward over the steps that are wholly reported.
func (c *Controller) completeSteps() {
	for c.next == nil || c.next.skip != c.step+1 {
		if _, _, ok := c.whole(c.shares[c.step+1]); !ok {
			return
		}
		c.closeStep()
	}
}

// closeStep says that the next step is done, with the reports that came. After
// the loss of a worker its last report can be missing although its push arrived.
func (c *Controller) closeStep() {
	c.step++
	g, s := c.gen, c.shares[c.step]
	delete(c.shares, c.step)
	if s != nil && c.generation(s.gen) != nil {
		g = c.generation(s.gen)
	}
	e := Event{Kind: StepDone, Gen: g.Number, Step: c.step, Epoch: c.cfg.Plan.Epoch(c.step), Servers: len(g.Servers)}
	for _, a := range g.Workers {
		if r, ok := s.get(a.Member); ok {
			e.Reports, e.Workers = append(e.Reports, r), append(e.Workers, a.ID)
		} else {
			e.Missing++
		}
	}
	c.restarts = 0
	c.event(e)
}

// forget takes the job back to step: what was reported beyond is void.
func (c *Controller) forget(step int64) {
	c.step = step
	for k := range c.shares {
		if k > step {
			delete(c.shares, k)
		}
	}
	for k := range c.evals {
		if k > step {
			delete(c.evals, k)
		}
	}
	c.evalled = min(c.evalled, step)
	if n := c.cfg.CheckpointEvery; n > 0 {
		c.periodic = min(c.periodic, step-step%n)
	}
	for _, p := range c.peers {
		p.done = min(p.done, step)
	}
}

// evaluationDue reports whether version step must be evaluated and was not yet.
func (c *Controller) evaluationDue(step int64) bool {
	if !c.cfg.Evaluate || c.cfg.Mode != BSP || step == 0 || c.evalled >= step {
		return false
	}
	return EvaluatesAfter(c.cfg.Plan.StepsPerEpoch(), c.cfg.Steps, step)
}

// EvaluatesAfter is the schedule of evaluations: after each epoch's last step
// and after the job's. Workers follow the same function.
func EvaluatesAfter(stepsPerEpoch, steps, step int64) bool {
	return step > 0 && (step%stepsPerEpoch == 0 || step == steps)
}

func (c *Controller) evaluated(m Message) {
	if c.cfg.Mode == BSP && (m.Step <= c.evalled || !c.belongs(m.Gen, m.Step)) {
		return
	}
	if c.cfg.Mode != BSP && (!c.async.evaluating || m.Gen != c.gen.Number) {
		return
	}
	c.collect(c.evals, m)
	s := c.evals[m.Step]
	reports, workers, ok := c.whole(s)
	if !ok {
		return
	}
	delete(c.evals, m.Step)
	c.evalled = m.Step
	c.event(Event{Kind: EvaluationRan, Gen: s.gen, Step: m.Step, Reports: reports, Workers: workers})
	c.tryCommit()
	c.asyncEvaluated()
	c.settle()
}

// settle does what became possible: leavers go, the job ends, the next command
// begins.
func (c *Controller) settle() {
	if c.gen == nil || c.state.Final() {
		return
	}
	c.dismissLeavers()
	if c.next == nil {
		c.rearm()
	}
	c.checkEnd()
	c.advance()
}

// checkEnd ends the job after its last step, evaluation and checkpoint.
func (c *Controller) checkEnd() {
	over := c.step >= c.cfg.Steps && !c.evaluationDue(c.step)
	if c.cfg.Mode != BSP {
		over = c.async.over
	}
	if !over || c.state == Finishing || c.next != nil && (c.next.phase == phaseSwitch || c.next.forced()) {
		return
	}
	if c.next != nil {
		c.abort("the job has reached its end", false)
	}
	c.setState(Finishing, "writing the last checkpoint")
	c.requestSnapshot(0, Finished)
}
