package sim

import (
	"cmp"
	"math"
	"slices"

	"optimus/internal/rng"
	"optimus/scheduler/place"
)

// RandomFailures draws failures of every node that begin before a time: a node is up and down in turn, each for an
// exponential time with the given mean, in seconds. A node that has begun to fail comes back.
func RandomFailures(nodes []place.Node, up, down, until float64, seed uint64) []Failure {
	var out []Failure
	spells(nodes, up, down, until, rng.NewKey(seed, 0), func(node string, from, to float64) {
		out = append(out, Failure{Node: node, At: from, Back: to})
	})
	return out
}

// RandomStragglers draws times in which a node is so many times slower, in the same way.
func RandomStragglers(nodes []place.Node, well, slow, until, factor float64, seed uint64) []Straggler {
	var out []Straggler
	spells(nodes, well, slow, until, rng.NewKey(seed, 1), func(node string, from, to float64) {
		out = append(out, Straggler{Node: node, At: from, Until: to, Factor: factor})
	})
	return out
}

// spells draws times of two kinds that alternate, and yields those of the second.
func spells(nodes []place.Node, first, second, until float64, key rng.Key, yield func(node string, from, to float64)) {
	for i, n := range nodes {
		of := rng.NewKey(uint64(key), uint64(i))
		drawn := uint64(0)
		draw := func(mean float64) float64 {
			drawn++
			return max(shortest, -mean*math.Log(1-of.Float64(drawn)))
		}
		for from := draw(first); from < until; {
			to := from + draw(second)
			yield(n.ID, from, to)
			from = to + draw(first)
		}
	}
}

// node is how a node of the cluster is, and what disturbs it.
type node struct {
	failures   []Failure
	stragglers []Straggler
	down       bool
	slow       float64 // how many times slower; 1 if not
}

// edge is a time at which a node changes.
type edge struct {
	at   float64
	node int
}

// loadNodes takes in the cluster and what disturbs it.
func (e *engine) loadNodes() {
	e.nodes = make([]node, len(e.cluster))
	for i := range e.nodes {
		e.nodes[i] = node{slow: 1}
	}
	for _, f := range e.cfg.Failures {
		i, _ := e.space.Index(f.Node)
		e.nodes[i].failures = append(e.nodes[i].failures, f)
		e.edges = append(e.edges, edge{f.At, i}, edge{f.Back, i})
	}
	for _, s := range e.cfg.Stragglers {
		i, _ := e.space.Index(s.Node)
		e.nodes[i].stragglers = append(e.nodes[i].stragglers, s)
		e.edges = append(e.edges, edge{s.At, i}, edge{s.Until, i})
	}
	slices.SortFunc(e.edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node)) })
}

// at brings the node to how it is from a time on.
func (n *node) at(now float64) {
	n.down, n.slow = false, 1
	for _, f := range n.failures {
		n.down = n.down || f.At <= now && (f.Back == 0 || now < f.Back)
	}
	for _, s := range n.stragglers {
		if s.At <= now && now < s.Until {
			n.slow = max(n.slow, s.Factor)
		}
	}
}

// passEdges brings the nodes up to now, and reports whether one failed or came back. A job on a node that fails loses
// what it has.
func (e *engine) passEdges() (failed bool) {
	if len(e.edges) == 0 || e.edges[0].at > e.now {
		return false
	}
	for len(e.edges) > 0 && e.edges[0].at <= e.now {
		i := e.edges[0].node
		e.edges = e.edges[1:]
		n := &e.nodes[i]
		before := n.down
		n.at(e.now)
		failed = failed || n.down != before
		if !n.down || before {
			continue
		}
		for _, j := range e.active {
			if j.onNode(i) {
				e.closeSpan(j, e.now)
				j.lose()
			}
		}
	}
	e.disturb()
	return failed
}

// nodesToCome reports whether a node that is down will come back.
func (e *engine) nodesToCome() bool {
	return slices.ContainsFunc(e.cfg.Failures, func(f Failure) bool { return f.At <= e.now && e.now < f.Back })
}

// disturb tells every job what it loses to others and to slow nodes.
func (e *engine) disturb() {
	if e.cfg.Interference == 0 && len(e.cfg.Stragglers) == 0 {
		return
	}
	spread := make([]int, len(e.nodes)) // jobs on several nodes that are on this one
	for _, j := range e.active {
		if len(j.alloc.Tasks) > 1 {
			for _, s := range j.alloc.Tasks {
				spread[s.Node]++
			}
		}
	}
	for _, j := range e.active {
		j.alloc.Slowdown, j.alloc.Slow = 0, nil
		for k, s := range j.alloc.Tasks {
			if len(j.alloc.Tasks) > 1 && spread[s.Node] > 1 {
				j.alloc.Slowdown = e.cfg.Interference
			}
			if slow := e.nodes[s.Node].slow; slow > 1 {
				if j.alloc.Slow == nil {
					j.alloc.Slow = slices.Repeat([]float64{1}, len(j.alloc.Tasks))
				}
				j.alloc.Slow[k] = slow
			}
		}
	}
}
