package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"optimus/scheduler/place"
)

// Autoscale chooses the size of a cluster that can be rented by the node. What a cluster is worth is its utility: the
// sum of the jobs' speedups over one GPU each, per GPU. It falls with the size. Within Low to High the cluster stays as
// it is; outside, it gets the size whose utility is closest to Target, or less if not all of that is used: jobs grow at
// most twofold in a round. In the paper's experiment with one job (§5.4.1), whose goodput grows as its gradients get
// noisier, High is 2/3, and both Low and Target are 1/2.
type Autoscale struct {
	Low, Target, High float64
	Min, Max          int // nodes
}

// Nodes returns how many nodes the jobs of a view should have, and why. The view's nodes are those that there are; the
// last by ID are given back first, and what is added is like kind. Nothing is decided by it: the state and the
// policy, which should be Pollux, only serve to plan for other sizes.
func (a Autoscale) Nodes(p Policy, st State, v View, kind place.Node) (nodes int, reason string, err error) {
	if !(0 <= a.Low && a.Low <= a.Target && a.Target <= a.High) || a.Min < 1 || a.Max < a.Min {
		return 0, "", fmt.Errorf("autoscale: utilities %v ≤ %v ≤ %v and sizes %d ≤ %d must be in order, sizes at least 1",
			a.Low, a.Target, a.High, a.Min, a.Max)
	}
	known := map[int]size{}
	look := func(nodes int) size {
		s, ok := known[nodes]
		if !ok && err == nil {
			s, err = plan(p, st, resized(v, nodes, kind))
			known[nodes] = s
		}
		return s
	}
	now := len(v.Nodes)
	nodes = min(max(now, a.Min), a.Max)
	if u := look(nodes).utility; err == nil && nodes == now && a.Low <= u && u <= a.High {
		return now, fmt.Sprintf("utility %.3g of %s is within %.3g to %.3g", u, count(now, "node"), a.Low, a.High), nil
	}
	lo, hi := a.Min, a.Max // utility(lo) ≥ Target > utility(hi), unless they are the ends
	for hi-lo > 1 && err == nil {
		if mid := lo + (hi-lo)/2; look(mid).utility >= a.Target {
			lo = mid
		} else {
			hi = mid
		}
	}
	if nodes = lo; math.Abs(look(hi).utility-a.Target) < math.Abs(look(lo).utility-a.Target) {
		nodes = hi
	}
	nodes = max(a.Min, min(nodes, look(nodes).used))
	u := look(nodes).utility
	if err != nil {
		return 0, "", err
	}
	return nodes, fmt.Sprintf("%d → %s: utility %.3g, aimed at %.3g", now, count(nodes, "node"), u, a.Target), nil
}

// size is what a cluster of some size is worth.
type size struct {
	utility float64
	used    int // nodes
}

// plan plans a round and says what the cluster is worth.
func plan(p Policy, st State, v View) (size, error) {
	_, decisions, err := Step(p, st, v)
	if err != nil {
		return size{}, fmt.Errorf("autoscale: %w", err)
	}
	jobs := make(map[string]*Job, len(v.Jobs))
	for i := range v.Jobs {
		jobs[v.Jobs[i].ID] = &v.Jobs[i]
	}
	speedups, gpus, used := 0.0, 0, map[string]bool{}
	for _, d := range decisions {
		j, on := jobs[d.Job], map[string]bool{}
		for _, m := range d.Members {
			on[m.Node], used[m.Node] = true, true
		}
		if k := d.Tasks[place.Worker]; k == 0 {
			continue
		} else if j.Goodput == nil {
			speedups += float64(k)
		} else if one := goodput(j, 1, 1); one > 0 {
			speedups += goodput(j, len(on), k) / one
		} else { // it cannot run on one GPU; its least is taken to scale perfectly
			least := j.least()[place.Worker]
			speedups += float64(least) * goodput(j, len(on), k) / max(goodput(j, 1, least), goodput(j, least, least))
		}
	}
	for _, n := range v.Nodes {
		gpus += most(v.Jobs, n)
	}
	return size{speedups / float64(max(1, gpus)), len(used)}, nil
}

// most is the number of GPUs of a node: the most workers of any of the jobs that it holds.
func most(jobs []Job, n place.Node) int {
	gpus := 0
	for i := range jobs {
		if d := jobs[i].Demand[place.Worker]; len(d) == len(n.Capacity) && slices.Max(d) > 0 {
			gpus = max(gpus, times(d, n.Capacity))
		}
	}
	return gpus
}

// resized returns the view with so many nodes.
func resized(v View, nodes int, kind place.Node) View {
	list := slices.Clone(v.Nodes)
	slices.SortFunc(list, func(a, b place.Node) int { return cmp.Compare(a.ID, b.ID) })
	for i := 0; len(list) < nodes; i++ {
		n := place.Node{ID: fmt.Sprintf("%s+%d", kind.ID, i), Capacity: kind.Capacity}
		if !slices.ContainsFunc(list, func(have place.Node) bool { return have.ID == n.ID }) {
			list = append(list, n)
		}
	}
	v.Nodes = list[:nodes]
	return v
}
