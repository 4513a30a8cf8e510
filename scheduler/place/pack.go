package place

import "math"

// Pack is Tetris's packing: nodes are filled one after another in the order of their IDs, each with the tasks that
// align best with what it has free, that is with the largest Σ_r free_r·demand_r (fractions of the cluster's
// capacity), until nothing more fits.
type Pack struct{}

// Name returns "pack".
func (Pack) Name() string { return "pack" }

// Place implements [Strategy].
func (Pack) Place(s *Space, j *Job) Placement {
	if s.firstFit == nil {
		s.firstFit = newTree(s)
	}
	var out Placement
	left := j.Tasks
	for from := 0; left != (Counts{}); from++ {
		node := -1
		for role, demand := range j.Demand {
			if left[role] > 0 {
				if n := s.firstFit.find(s, from, demand); n >= 0 && (node < 0 || n < node) {
					node = n
				}
			}
		}
		if node < 0 {
			return nil
		}
		c := packed(s, j, node, left)
		left[PS] -= c[PS]
		left[Worker] -= c[Worker]
		out = append(out, Share{Node: node, Tasks: c})
		from = node
	}
	return book(s, j, out)
}

// packed returns what one node takes of the tasks that are left.
func packed(s *Space, j *Job, node int, left Counts) Counts {
	var c Counts
	for {
		role, best := Role(-1), math.Inf(-1)
		for _, try := range []Role{Worker, PS} {
			next := c
			if next[try]++; next[try] > left[try] || !j.fits(next, s.Free(node)) {
				continue
			}
			if a := alignment(s, j, node, c, try); a > best {
				role, best = try, a
			}
		}
		if role < 0 {
			return c
		}
		c[role]++
	}
}

// alignment returns Σ_r free_r·demand_r of one more task on a node that has already been given c.
func alignment(s *Space, j *Job, node int, c Counts, role Role) float64 {
	sum := 0.0
	for r, free := range s.Free(node) {
		if t := float64(s.total[r]); t > 0 {
			sum += float64(free-j.need(c, r)) / t * float64(j.Demand[role][r]) / t
		}
	}
	return sum
}

// tree finds the first node with enough room. Each inner node holds the most that any node below it has free of
// each type; that a demand fits under this maximum is necessary, not sufficient, so a search may turn back.
type tree struct {
	leaves int // power of two
	most   []int64
}

func newTree(s *Space) *tree {
	t := &tree{leaves: 1}
	for t.leaves < s.Len() {
		t.leaves *= 2
	}
	t.most = make([]int64, 2*t.leaves*s.types)
	for i := range t.most {
		t.most[i] = -1 // padding holds nothing, not even a task without demands
	}
	for i := range s.Len() {
		copy(t.at(s, t.leaves+i), s.Free(i))
	}
	for i := t.leaves - 1; i > 0; i-- {
		t.join(s, i)
	}
	return t
}

func (t *tree) at(s *Space, i int) Vector { return t.most[i*s.types : (i+1)*s.types] }

func (t *tree) join(s *Space, i int) {
	a, b, out := t.at(s, 2*i), t.at(s, 2*i+1), t.at(s, i)
	for r := range out {
		out[r] = max(a[r], b[r])
	}
}

// update follows a change of one node's free amounts.
func (t *tree) update(s *Space, node int) {
	i := t.leaves + node
	copy(t.at(s, i), s.Free(node))
	for i /= 2; i > 0; i /= 2 {
		t.join(s, i)
	}
}

// find returns the first node from the given one on that has room for a demand, or −1.
func (t *tree) find(s *Space, from int, demand Vector) int {
	return t.search(s, 1, 0, t.leaves, from, demand)
}

func (t *tree) search(s *Space, i, low, high, from int, demand Vector) int {
	if high <= from || !demand.Fits(t.at(s, i)) {
		return -1
	}
	if i >= t.leaves {
		return low
	}
	mid := (low + high) / 2
	if n := t.search(s, 2*i, low, mid, from, demand); n >= 0 {
		return n
	}
	return t.search(s, 2*i+1, mid, high, from, demand)
}
