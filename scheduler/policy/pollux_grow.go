package policy

import (
	"math"
	"slices"
)

// offer is the growth of one job that adds most to the sum per GPU.
type offer struct {
	at     int // the job
	base   bool
	gpus   int // otherwise, of a new row
	gain   float64
	change int // of the solution, at which it was computed
}

// grow gives free GPUs to some of the jobs, each time to the one that gains most per GPU, until none gains. Weights,
// if there are any, multiply what the jobs are seen to gain.
func (r *polluxRound) grow(x *solution, jobs []int, weights []float64) {
	r.findRoom(x, jobs)
	offers, change := make([]offer, len(jobs)), 0
	look := func(i int) {
		offers[i] = r.offer(x, jobs[i])
		offers[i].change = change
		if weights != nil {
			offers[i].gain *= weights[i]
		}
	}
	for i := range jobs {
		look(i)
	}
	for len(offers) > 0 {
		best := 0
		for i := range offers {
			if offers[i].gain > offers[best].gain {
				best = i
			}
		}
		if offers[best].gain <= 0 {
			return
		}
		if offers[best].change == change { // otherwise others may have taken what it counts on
			r.accept(x, &offers[best])
			change++
		}
		look(best)
	}
}

// findRoom lists the nodes that these jobs could get something of: those with something free, and their own.
func (r *polluxRound) findRoom(x *solution, jobs []int) {
	own := make([]bool, r.Space.Len())
	for _, at := range jobs {
		for _, s := range x.rows[at] {
			own[s.node] = true
		}
	}
	r.nodes = r.nodes[:0]
	for n := range own {
		if own[n] || slices.ContainsFunc(x.room, func(room []int) bool { return room[n] > 0 }) {
			r.nodes = append(r.nodes, n)
		}
	}
}

// accept carries out an offer.
func (r *polluxRound) accept(x *solution, o *offer) {
	to := r.jobs[o.at].base
	r.set(x, o.at, nil)
	if !o.base {
		to = r.seats(x, &r.jobs[o.at], o.gpus)
	}
	r.set(x, o.at, to)
}

// lookahead is how far beyond double its GPUs a job's next growth may be: over the GPUs of a node at least, because
// the first GPU on a second node may be a loss.
const lookahead = 8

// offer finds a job's best growth. On each number of GPUs a job takes the fewest nodes.
func (r *polluxRound) offer(x *solution, at int) offer {
	c, old, best := &r.jobs[at], x.rows[at], offer{at: at}
	if c.fixed {
		return best
	}
	now, have := r.termOf(c, old), old.gpus()
	if have >= c.limit && (len(c.base) == 0 || slices.Equal(old, c.base)) {
		return best
	}
	r.book(x, c, old, -1)
	if len(c.base) > 0 && !slices.Equal(old, c.base) && c.keep > now && r.fits(x, c, c.base) {
		best = offer{at: at, base: true, gain: (c.keep - now) / float64(max(1, c.base.gpus()-have))}
	}
	single := r.countRooms(x, c)
	total, nodes, room := 0, 0, len(r.count)-1
	for gpus := max(have+1, c.least); gpus <= min(c.limit, max(2*have+lookahead, c.least)); gpus++ {
		on := 1
		if gpus > single {
			for ; total < gpus && room > 0; room-- { // the fullest use of the emptiest nodes
				n := min(r.count[room], (gpus-total+room-1)/room)
				total, nodes = total+n*room, nodes+n
				if r.count[room] -= n; r.count[room] > 0 {
					room++ // there are more of this kind
				}
			}
			if on = nodes; total < gpus || r.MaxNodes > 0 && nodes > r.MaxNodes {
				break
			}
		}
		if gain := (r.changed(c, on, gpus) - now) / float64(gpus-have); gain > best.gain {
			best = offer{at: at, gpus: gpus, gain: gain}
		}
	}
	r.book(x, c, old, 1)
	return best
}

// countRooms counts, by room, the nodes that a job could span, and returns the largest room of any node. Room beyond
// the job's limit is not counted.
func (r *polluxRound) countRooms(x *solution, c *contender) (single int) {
	r.count = append(r.count[:0], make([]int, c.limit+1)...)
	for _, n := range r.nodes {
		room := min(c.limit, x.room[c.kind][n])
		single = max(single, room)
		if r.open(x, n) {
			r.count[room]++
		}
	}
	return single
}

// seats chooses the nodes of a new row: the one of least room that holds all, else the fewest, largest first, the last
// of least room that holds the rest.
func (r *polluxRound) seats(x *solution, c *contender, gpus int) row {
	var out row
	for left := gpus; left > 0; {
		holds, holdsRoom, most, mostRoom := -1, math.MaxInt, -1, 0
		for _, n := range r.nodes {
			if len(out) > 0 && slices.ContainsFunc(out, func(s seat) bool { return s.node == n }) {
				continue
			}
			room, open := x.room[c.kind][n], r.open(x, n)
			if room >= left && room < holdsRoom && (open || len(out) == 0) {
				holds, holdsRoom = n, room
			}
			if open && room > mostRoom {
				most, mostRoom = n, room
			}
		}
		switch {
		case holds >= 0:
			out = append(out, seat{holds, left})
			left = 0
		case most < 0:
			return nil
		default:
			out = append(out, seat{most, mostRoom})
			left -= mostRoom
		}
	}
	slices.SortFunc(out, bySeat)
	return out
}
