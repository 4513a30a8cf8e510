package optimus

import (
	"fmt"
	"math"
	"slices"

	"optimus/internal/rng"
	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
	"optimus/scheduler/policy"
	"optimus/scheduler/sim"
)

const (
	lossesPerEpoch = 20  // each the mean over a twentieth of an epoch
	lossNoise      = .02 // relative standard deviation of a loss
	lossOutliers   = .01 // fraction of the losses that are half as large again
	speedNoise     = .03 // relative standard deviation of a measured speed
	probes         = 5   // configurations measured before the job starts (§6.1)

	// priorEpochs is what a job is taken to need before its losses say more: the constant of the paper's code for jobs
	// whose losses it cannot fit. priorSpread is how far off that may be, as the logarithm of a factor.
	priorEpochs = 20
	priorSpread = .7
	normal90    = 1.645 // of the interval of a forecast
)

// Job is a job of a kind. It implements sim.Process.
type Job struct {
	kind  *Kind
	truth *truth
	total float64 // true epochs to convergence
	noise rng.Key
	known bool // the scheduler sees the truth

	done     float64 // epochs
	losses   estimate.Convergence
	drawn    int              // losses that the scheduler has been told
	expected float64          // total epochs, as it expects from them; 0 before it was asked
	measured []estimate.Probe // one for each configuration
	samples  uint64           // speeds measured so far
	seen     uint64           // generation whose speed was measured last
	speeds   *speeds          // nil if the measurements have changed
}

// Demands of a task: cores and GB. The paper does not print them; these are what its code asks for ResNet-50 without
// the GPUs, of which the testbed has 12 while up to 60 tasks ran on it.
var (
	psDemand     = place.Vector{3, 9}
	workerDemand = place.Vector{2, 8}
)

const cpuServers = 7

// Cluster returns the testbed's nodes, cores and GB: 7 servers of 16 cores and 80 GB, 6 of 8 cores and 48 GB (§6.1).
func Cluster() []place.Node {
	var nodes []place.Node
	for i := range servers {
		if i < cpuServers {
			nodes = append(nodes, place.Node{ID: fmt.Sprintf("cpu-%d", i), Capacity: place.Vector{16, 80}})
		} else {
			nodes = append(nodes, place.Node{ID: fmt.Sprintf("gpu-%d", i-cpuServers), Capacity: place.Vector{8, 48}})
		}
	}
	return nodes
}

// newJob returns a job that its owner stops at the part δ of the loss's decrease, with its first speeds measured.
func (t *Truths) newJob(kind int, mode Mode, delta float64, noise rng.Key) *Job {
	k := &t.kinds[kind]
	j := &Job{kind: k, truth: t.of[kind][mode], noise: noise}
	threshold := k.Threshold(delta)
	j.total = k.Epochs(threshold)
	j.losses = estimate.Convergence{
		History:   estimate.History{EpochExamples: int64(k.Batch * k.Steps)},
		Threshold: threshold, Patience: Patience,
	}
	for _, c := range j.truth.design {
		j.measure(c.Servers, c.Workers, j.truth.StepsPerSecond(c.Servers, c.Workers))
	}
	return j
}

// design chooses the configurations to probe.
func design(form estimate.Form) []estimate.Probe {
	var all, out []estimate.Probe
	for p := 1; p <= MaxTasks; p++ {
		for w := 1; w <= MaxTasks; w++ {
			all = append(all, estimate.Probe{Servers: p, Workers: w})
		}
	}
	for range probes {
		next, ok := estimate.NextProbe(form, out, all)
		if !ok {
			break
		}
		next.Speed = 1 // only its place counts
		out = append(out, next)
	}
	return out
}

// measure tells the scheduler a speed. That of a configuration measured before replaces the old one: it is of where the
// tasks are now.
func (j *Job) measure(p, w int, f float64) {
	f *= 1 + speedNoise*j.noise.Normal(j.samples)
	j.samples++
	m := estimate.Probe{Servers: p, Workers: w, Speed: f}
	if i := slices.IndexFunc(j.measured, func(o estimate.Probe) bool { return o.Servers == p && o.Workers == w }); i >= 0 {
		j.measured[i] = m
	} else {
		j.measured = append(j.measured, m)
	}
	j.speeds = nil
}

// Advance implements sim.Process.
func (j *Job) Advance(a sim.Allocation, seconds float64) (ran float64, done bool) {
	f := j.truth.speed(a.Tasks) * j.truth.pace(&a)
	if a.Generation != j.seen && seconds > 0 {
		j.seen = a.Generation
		c := a.Tasks.Total()
		j.measure(c[place.PS], c[place.Worker], f)
	}
	rate := f / float64(j.kind.Steps)
	if need := (j.total - j.done) / rate; need <= seconds {
		j.done = j.total
		return need, true
	}
	j.done += rate * seconds
	return seconds, false
}

// Clone implements sim.Process.
func (j *Job) Clone() sim.Process {
	c := *j
	c.losses.Bins, c.losses.Tail = slices.Clone(j.losses.Bins), slices.Clone(j.losses.Tail)
	c.measured = slices.Clone(j.measured)
	if j.speeds != nil {
		s := *j.speeds
		c.speeds = &s
	}
	return &c
}

// Show implements sim.Process.
func (j *Job) Show(v *policy.Job) {
	v.Demand = [2]place.Vector{psDemand, workerDemand}
	v.Max = place.Counts{MaxTasks, MaxTasks}
	if j.known {
		v.Remaining, v.Progress = (j.total-j.done)*float64(j.kind.Steps), j.done/j.total
		v.Speed = j.truth
		return
	}
	if j.speeds == nil {
		j.speeds = newSpeeds(j.truth.form, j.measured)
	}
	v.Speed = j.speeds
	left := max(j.forecast()-j.done, 0)
	v.Remaining = left * float64(j.kind.Steps)
	v.Progress = j.done / (j.done + left)
}

// forecast returns the total epochs as the losses so far say. What they do not say yet is made up by the prior: the two
// are weighted by how sure each of them is of the logarithm of the total.
func (j *Job) forecast() float64 {
	if news := j.draw(); !news && j.expected > 0 {
		return j.expected
	}
	mean, prior := math.Log(priorEpochs), 1/(priorSpread*priorSpread)
	if f, err := j.losses.Forecast(); err == nil && !math.IsInf(f.High, 1) {
		spread := max(math.Log(f.High/f.Total)/normal90, 1e-3)
		told := 1 / (spread * spread)
		mean = (mean*prior + math.Log(f.Total)*told) / (prior + told)
	}
	j.expected = math.Exp(mean)
	return j.expected
}

// draw tells the scheduler the losses up to now, and reports whether there were any.
func (j *Job) draw() (news bool) {
	key := rng.NewKey(uint64(j.noise), 1)
	size := float64(j.losses.EpochExamples) / lossesPerEpoch
	for ; float64(j.drawn+1) <= j.done*lossesPerEpoch; j.drawn++ {
		n := uint64(j.drawn)
		loss := j.kind.Loss(float64(j.drawn)/lossesPerEpoch) * (1 + lossNoise*key.Normal(2*n))
		if key.Float64(2*n+1) < lossOutliers {
			loss *= 1.5
		}
		p := estimate.LossPoint{Step: int64(j.drawn + 1), Examples: int64(float64(j.drawn+1) * size), Epoch: j.drawn / lossesPerEpoch,
			Loss: max(0, loss), Weight: size, LearningRate: .1, M: j.kind.Batch}
		if err := j.losses.Add(p); err == nil { // a loss that the history refuses tells nothing
			news = true
		}
	}
	return news
}

// speeds is a fit, asked for each configuration once.
type speeds struct {
	fit  estimate.SpeedFit
	ok   bool
	memo grid
}

func newSpeeds(form estimate.Form, measured []estimate.Probe) *speeds {
	fit, err := estimate.FitSpeed(form, measured)
	return &speeds{fit: fit, ok: err == nil}
}

// StepsPerSecond implements policy.Speed.
func (s *speeds) StepsPerSecond(p, w int) float64 {
	if !s.ok || p < 1 || w < 1 || p > MaxTasks || w > MaxTasks {
		return math.NaN()
	}
	if s.memo[p][w] == 0 {
		s.memo[p][w], _ = s.fit.At(p, w)
	}
	return s.memo[p][w]
}
