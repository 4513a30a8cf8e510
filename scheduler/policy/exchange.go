package policy

import (
	"cmp"
	"slices"

	"optimus/scheduler/place"
)

// circle is how many jobs exchange looks at: those with the least to lose and those with the most to gain. Greedy
// is off by what one task at the margin is worth, so the few jobs at the margin are enough, and on a large cluster
// the rest costs nothing.
const circle = 12

// exchange improves Σ t_j. Among a few jobs it changes the tasks of one or two at a time, each role by up to reach
// up or down, if the result fits and is shorter in sum, until nothing is; the best such change of a round is made.
func (g *greedy) exchange() {
	jobs := g.circle()
	if len(jobs) == 0 {
		return
	}
	reach := 1
	if len(jobs) <= 4 {
		reach = 3
	}
	e := exchanger{g: g, jobs: jobs, reach: reach}
	for range 4 * len(jobs) {
		if !e.round() {
			return
		}
	}
}

// circle returns the jobs to look at, in their order.
func (g *greedy) circle() []*growing {
	type offer struct {
		w          *growing
		gain, loss float64
	}
	var offers []offer
	for i := range g.grow {
		w := &g.grow[i]
		if !w.running() {
			continue
		}
		o := offer{w: w}
		for m, add := range moves[:2] {
			if more := plus(w.tasks, add); w.job.bounded(more) {
				if t, ok := w.job.seconds(more); ok {
					o.gain = max(o.gain, (w.seconds-t)/w.price[m])
				}
			}
			if less, ok := w.minus(add); ok {
				if t, ok := w.job.seconds(less); ok && (o.loss == 0 || (t-w.seconds)/w.price[m] < o.loss) {
					o.loss = (t - w.seconds) / w.price[m]
				}
			}
		}
		offers = append(offers, o)
	}
	if len(offers) > circle {
		half := slices.Clone(offers)
		slices.SortStableFunc(half, func(a, b offer) int { return cmp.Compare(b.gain, a.gain) })
		slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(a.loss, b.loss) })
		offers = append(offers[:circle/2], half[:circle/2]...)
	}
	var out []*growing
	for _, o := range offers {
		if !slices.Contains(out, o.w) {
			out = append(out, o.w)
		}
	}
	return out
}

// minus takes tasks away and reports whether the job may lose them.
func (w *growing) minus(c place.Counts) (place.Counts, bool) {
	least, now := w.job.least(), place.Counts{w.tasks[0] - c[0], w.tasks[1] - c[1]}
	return now, now[0] >= least[0] && now[1] >= least[1]
}

// variant is another size of a job.
type variant struct {
	tasks   place.Counts
	seconds float64
	faster  float64      // seconds saved; negative if slower
	frees   place.Vector // what the change gives back; negative if it takes
}

type exchanger struct {
	g     *greedy
	jobs  []*growing
	reach int
}

// round makes the best change and reports whether there was one.
func (e *exchanger) round() bool {
	all := make([][]variant, len(e.jobs))
	for i, w := range e.jobs {
		all[i] = e.variants(w)
	}
	type change struct {
		a, b   int
		va, vb variant
	}
	var best change
	saved := 0.0
	none := variant{frees: make(place.Vector, len(e.g.pool.left))}
	for a := range all {
		for _, va := range all[a] {
			for b := a; b < len(all); b++ {
				for _, vb := range all[b] {
					if b == a {
						vb = none // the job alone
					}
					// A relative margin keeps rounding errors from going round in circles.
					if s := va.faster + vb.faster; s > saved && s > 1e-9*(e.jobs[a].seconds+e.jobs[b].seconds) && e.fits(va, vb) {
						best, saved = change{a, b, va, vb}, s
					}
					if b == a {
						break
					}
				}
			}
		}
	}
	if saved == 0 {
		return false
	}
	e.apply(e.jobs[best.a], best.va)
	if best.b != best.a {
		e.apply(e.jobs[best.b], best.vb)
	}
	return true
}

// variants lists the sizes of a job within reach of its present one that are allowed and whose speed is known.
func (e *exchanger) variants(w *growing) []variant {
	var out []variant
	least := w.job.least()
	for dp := -e.reach; dp <= e.reach; dp++ {
		for dw := -e.reach; dw <= e.reach; dw++ {
			c := plus(w.tasks, place.Counts{dp, dw})
			if c == w.tasks || c[0] < least[0] || c[1] < least[1] || !w.job.bounded(c) {
				continue
			}
			if t, ok := w.job.seconds(c); ok {
				v := variant{tasks: c, seconds: t, faster: w.seconds - t, frees: make(place.Vector, len(e.g.pool.left))}
				for r := range v.frees {
					v.frees[r] = amount(w.job, w.tasks, r) - amount(w.job, c, r)
				}
				out = append(out, v)
			}
		}
	}
	return out
}

func (e *exchanger) fits(a, b variant) bool {
	for r, left := range e.g.pool.left {
		if left+a.frees[r]+b.frees[r] < 0 {
			return false
		}
	}
	return true
}

func (e *exchanger) apply(w *growing, v variant) {
	for r := range v.frees {
		e.g.pool.left[r] += v.frees[r]
	}
	w.exchanged, w.from = true, w.tasks
	w.tasks, w.seconds, w.lastGain = v.tasks, v.seconds, v.faster
}
