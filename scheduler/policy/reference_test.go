package policy

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"optimus/scheduler/place"
)

// exhaustive returns the least Σ t_j of up to 3 jobs with at most 12 tasks each, over all allocations that fit.
func exhaustive(jobs []Job, cluster *place.Space) float64 {
	type size struct {
		t    float64
		need place.Vector
	}
	sizes, fastest := make([][]size, len(jobs)), make([]float64, len(jobs)+1)
	for i := len(jobs) - 1; i >= 0; i-- {
		least := math.Inf(1)
		for p := 1; p < 12; p++ {
			for w := 1; p+w <= 12; w++ {
				c := place.Counts{p, w}
				if t, ok := jobs[i].seconds(c); ok {
					least = min(least, t)
					sizes[i] = append(sizes[i], size{t, place.Vector{amount(&jobs[i], c, 0), amount(&jobs[i], c, 1)}})
				}
			}
		}
		slices.SortFunc(sizes[i], func(a, b size) int { return cmp.Compare(a.t, b.t) })
		fastest[i] = least + fastest[i+1]
	}
	best := math.Inf(1)
	var try func(i int, sum float64, left0, left1 int64)
	try = func(i int, sum float64, left0, left1 int64) {
		if i == len(jobs) {
			best = min(best, sum)
			return
		}
		for _, s := range sizes[i] {
			if sum+s.t+fastest[i+1] >= best {
				return
			}
			if s.need[0] <= left0 && s.need[1] <= left1 {
				try(i+1, sum+s.t, left0-s.need[0], left1-s.need[1])
			}
		}
	}
	try(0, 0, cluster.Capacity()[0], cluster.Capacity()[1])
	return best
}

// sync and async are Eqns 4 and 3.
func syncSpeed(M float64, θ [5]float64) SpeedFunc {
	return func(p, w int) float64 {
		P, W := float64(p), float64(w)
		return 1 / (θ[0]*M/W + θ[1] + θ[2]*W/P + θ[3]*W + θ[4]*P)
	}
}

func asyncSpeed(θ [4]float64) SpeedFunc {
	return func(p, w int) float64 {
		P, W := float64(p), float64(w)
		return W / (θ[0] + θ[1]*W/P + θ[2]*W + θ[3]*P)
	}
}

// randomSpeed draws coefficients around Table 2's.
func randomSpeed(rng *rand.Rand) SpeedFunc {
	u := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	if rng.IntN(2) == 0 {
		return syncSpeed(40, [5]float64{u(.3, 3), u(.5, 5), u(1, 10), u(.001, .3), u(.001, .3)})
	}
	return asyncSpeed([4]float64{u(1, 6), u(1, 8), u(.001, .3), u(.001, .3)})
}

// randomJobs draws 1 to 3 jobs of at most 12 tasks and a cluster that holds at least 1 + 1 of each. Tasks are equal
// containers, or of different sizes in two resources.
func randomJobs(rng *rand.Rand, equal bool) ([]Job, *place.Space) {
	jobs := make([]Job, 1+rng.IntN(3))
	need := place.Vector{0, 0}
	for i := range jobs {
		jobs[i] = Job{ID: fmt.Sprint("j", i), Remaining: 100 * math.Pow(100, rng.Float64()), Speed: randomSpeed(rng)}
		f := jobs[i].Speed
		jobs[i].Speed = SpeedFunc(func(p, w int) float64 {
			if p+w > 12 {
				return math.NaN() // never measured
			}
			return f.StepsPerSecond(p, w)
		})
		jobs[i].Demand = [2]place.Vector{{int64(1 + rng.IntN(3)), 0}, {int64(1 + rng.IntN(3)), int64(rng.IntN(2))}}
		if equal {
			jobs[i].Demand = [2]place.Vector{{1, 0}, {1, 0}}
		}
		for r := range need {
			need[r] += amount(&jobs[i], place.Counts{1, 1}, r)
		}
	}
	for r := range need {
		need[r] += int64(rng.IntN(24))
	}
	s, err := place.NewSpace([]place.Node{{ID: "all", Capacity: need}})
	if err != nil {
		panic(err)
	}
	return jobs, s
}

func sumSeconds(jobs []Job, out []Allocation) float64 {
	sum := 0.0
	for i := range jobs {
		t, _ := jobs[i].seconds(out[i].Tasks)
		sum += t
	}
	return sum
}

// TestGreedyAgainstExhaustive holds the policy "optimus" to the optimum, and shows how far the paper's rule is from it.
func TestGreedyAgainstExhaustive(t *testing.T) {
	for _, equal := range []bool{true, false} {
		t.Run(fmt.Sprintf("equal containers %v", equal), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			var best, paper tally
			for range 1000 {
				jobs, cluster := randomJobs(rng, equal)
				least := exhaustive(jobs, cluster)
				best.count(sumSeconds(jobs, Optimus{Best()}.Allocate(jobs, cluster)) / least)
				paper.count(sumSeconds(jobs, Optimus{}.Allocate(jobs, cluster)) / least)
			}
			t.Logf("optimus: %v", best)
			t.Logf("paper:   %v", paper)
			if best.equal < 950 || best.worst > 1.05 {
				t.Errorf("optimus: %v; want at least 950 equal and none over 5 %% above", best)
			}
			if equal && paper.equal < 950 {
				t.Errorf("paper: %v; want at least 950 equal", paper)
			}
		})
	}
}

// tally counts ratios of Σ t_j to a reference.
type tally struct {
	equal, less, more, over int
	worst, product          float64
}

func (c *tally) count(ratio float64) {
	switch {
	case ratio > 1+1e-9:
		c.more++
	case ratio < 1-1e-9:
		c.less++
	default:
		c.equal++
	}
	if ratio > 1.05 {
		c.over++
	}
	c.worst = max(c.worst, ratio)
	c.product += math.Log(ratio)
}

func (c tally) String() string {
	n := c.equal + c.less + c.more
	return fmt.Sprintf("equal in %d of %d, less in %d, more in %d (over 5 %% in %d, worst ratio %.4f), mean ratio %.4f",
		c.equal, n, c.less, c.more, c.over, c.worst, math.Exp(c.product/float64(n)))
}

// TestDeviationsAlone compares each deviation from the paper, alone, with the paper on 1,000 random instances. Those
// that cannot lose must not; for the others the loss is shown, and the mean must be a gain.
func TestDeviationsAlone(t *testing.T) {
	for _, c := range []struct {
		name      string
		opt       Options
		neverMore bool
	}{
		{"share", Options{Share: true}, false},
		{"continue", Options{Continue: true}, true},
		{"joint", Options{Joint: true}, false},
		{"exchange", Options{Exchange: true}, true},
		{"all of them", Best(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			var got tally
			for range 1000 {
				jobs, cluster := randomJobs(rng, false)
				if rng.IntN(3) == 0 { // a job whose pairs of ps and worker work alone: single moves stall
					jobs[0].Speed = SpeedFunc(func(p, w int) float64 { return float64(min(p, w)) / float64(10+p+w) })
				}
				paper := sumSeconds(jobs, Optimus{}.Allocate(jobs, cluster))
				got.count(sumSeconds(jobs, Optimus{c.opt}.Allocate(jobs, cluster)) / paper)
			}
			t.Logf("against the paper: %v", got)
			if c.neverMore && got.more > 0 || got.product > 1e-9 {
				t.Errorf("%s: %v", c.name, got)
			}
		})
	}
}
