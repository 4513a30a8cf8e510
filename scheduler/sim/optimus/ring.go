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
	"optimus/scheduler/trace"
)

// RingTruth is the truth of the ring paper's jobs: training without ps on CIFAR-10, with a fixed batch per GPU. The paper
// simulates what its scheduler assumes; here the speeds are those that others measured of all-reduce training. Between
// measured numbers of GPUs ln(speed) is linear in ln(GPUs).
type RingTruth struct {
	batch int       // of one GPU
	gpus  []float64 // as measured, increasing
	speed []float64 // batches/s of all GPUs together
}

// ringMinutes is what the paper's job takes on 4 GPUs (its Table 2).
const ringMinutes = 126

// ringBytes is the size of the model, ResNet-18 in 32 bits. It only scales a coefficient of the fit.
const ringBytes = 44_700_000

// NewRingTruth takes the speeds of a kind on a type of GPU from those of Gavel's simulator. The nearest to the paper's is
// ResNet-18 with 128 images per GPU on p100, which scales from 4 to 8 GPUs with 93.7 %, where the paper has 94.5 %.
func NewRingTruth(speeds []trace.GavelSpeed, kind trace.GavelKind, gpu string) (*RingTruth, error) {
	t := &RingTruth{batch: kind.Batch}
	for _, s := range speeds { // by number of GPUs
		if s.GPU == gpu && s.Kind == kind && s.Speed > 0 {
			t.gpus = append(t.gpus, float64(s.GPUs))
			t.speed = append(t.speed, s.Speed)
		}
	}
	if len(t.gpus) < 2 || t.gpus[0] != 1 {
		return nil, fmt.Errorf("truth of ring jobs: speeds of %v on %s are known for %v GPUs; 1 and more are needed", kind, gpu, t.gpus)
	}
	return t, nil
}

// Most is the largest number of GPUs that was measured.
func (t *RingTruth) Most() int { return int(t.gpus[len(t.gpus)-1]) }

// BatchesPerSecond returns the true speed, of all GPUs together.
func (t *RingTruth) BatchesPerSecond(gpus int) float64 {
	w := float64(gpus)
	i, _ := slices.BinarySearch(t.gpus, w)
	i = min(max(i, 1), len(t.gpus)-1)
	part := math.Log(w/t.gpus[i-1]) / math.Log(t.gpus[i]/t.gpus[i-1])
	return t.speed[i-1] * math.Pow(t.speed[i]/t.speed[i-1], part)
}

// RingJob is a job of the ring paper. It implements sim.Process.
type RingJob struct {
	truth    *RingTruth
	total    float64 // batches
	noise    rng.Key
	done     float64
	measured []estimate.Probe
	samples  uint64
	seen     uint64
	fit      *estimate.SpeedFit // nil if the measurements have changed or do not determine it
}

// Ring returns n jobs with arrivals and lengths drawn: from half to one and a half times the paper's. If the jobs are
// known, the speeds of their kind on 1, 2, 4 and 8 GPUs were measured in an earlier run, with noise; else they become
// known as a job runs.
func (t *RingTruth) Ring(n int, arrivals trace.Arrivals, known bool, seed uint64) []sim.Job {
	jobs := make([]sim.Job, n)
	key := rng.NewKey(seed, 0x71)
	for i, at := range arrivals.Draw(n, seed) {
		j := &RingJob{truth: t, noise: rng.NewKey(uint64(key), uint64(i))}
		j.total = t.BatchesPerSecond(4) * ringMinutes * 60 * (.5 + key.Float64(uint64(i)))
		if known {
			for w := 1; w <= t.Most(); w *= 2 {
				j.measure(w)
			}
		}
		jobs[i] = sim.Job{Name: fmt.Sprintf("ring-%03d", i), Submit: at, Process: j}
	}
	return jobs
}

func (j *RingJob) measure(gpus int) {
	m := estimate.Probe{Servers: 1, Workers: gpus, Speed: j.truth.BatchesPerSecond(gpus) * (1 + speedNoise*j.noise.Normal(j.samples))}
	j.samples++
	j.fit = nil
	if i := slices.IndexFunc(j.measured, func(o estimate.Probe) bool { return o.Workers == gpus }); i >= 0 {
		j.measured[i] = m
	} else {
		j.measured = append(j.measured, m)
	}
}

// Advance implements sim.Process.
func (j *RingJob) Advance(a sim.Allocation, seconds float64) (ran float64, done bool) {
	gpus := a.Tasks.Total()[place.Worker]
	if a.Generation != j.seen && seconds > 0 {
		j.seen = a.Generation
		j.measure(gpus)
	}
	f := j.truth.BatchesPerSecond(gpus) * a.Pace()
	if need := (j.total - j.done) / f; need <= seconds {
		j.done = j.total
		return need, true
	}
	j.done += f * seconds
	return seconds, false
}

// Clone implements sim.Process.
func (j *RingJob) Clone() sim.Process {
	c := *j
	c.measured = slices.Clone(j.measured)
	return &c
}

// Show implements sim.Process. How much is left is known, as the paper has it for jobs of a kind that has run before.
func (j *RingJob) Show(v *policy.Job) {
	v.Demand = [2]place.Vector{{0}, {1}}
	v.Ring = true
	v.Max[place.Worker] = j.truth.Most()
	v.Remaining, v.Progress = j.total-j.done, j.done/j.total
	if j.fit == nil {
		if fit, err := estimate.FitSpeed(estimate.Ring(j.truth.batch, ringBytes), j.measured); err == nil {
			j.fit = &fit
		}
	}
	fit := j.fit
	v.Speed = policy.SpeedFunc(func(_, w int) float64 {
		if fit == nil {
			return math.NaN() // not known yet
		}
		f, _ := fit.At(1, w)
		return f
	})
}
