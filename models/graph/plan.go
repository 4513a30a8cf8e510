package graph

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
)

// plan is an order in which nodes can be computed.
type plan struct {
	steps  []step
	wanted map[*gorgonia.Node]bool
}

// step computes one node.
type step struct {
	node     *gorgonia.Node
	children gorgonia.Nodes
	last     gorgonia.Nodes // children whose values nobody reads later
}

// newPlan orders all that the wanted nodes are made of.
func newPlan(wanted gorgonia.Nodes) (plan, error) {
	p := plan{wanted: map[*gorgonia.Node]bool{}}
	var g *gorgonia.ExprGraph
	needed := map[*gorgonia.Node]bool{}
	for _, n := range wanted {
		g, p.wanted[n], needed[n] = n.Graph(), true, true
	}
	sorted, err := gorgonia.Sort(g) // from the results to the inputs
	if err != nil {
		return p, err
	}
	read := map[*gorgonia.Node]bool{}
	for _, n := range sorted {
		if !needed[n] {
			continue
		}
		s := step{node: n}
		for it := g.From(n.ID()); it.Next(); {
			child := it.Node().(*gorgonia.Node)
			needed[child] = true
			s.children = append(s.children, child)
			if !read[child] && !p.wanted[child] {
				read[child] = true
				s.last = append(s.last, child)
			}
		}
		p.steps = append(p.steps, s)
	}
	return p, nil
}

// run computes the plan's nodes and returns the values of the wanted ones. Values
// of variables are given.
func (p plan) run(given map[*gorgonia.Node]gorgonia.Value, training bool) (map[*gorgonia.Node]gorgonia.Value, error) {
	values := make(map[*gorgonia.Node]gorgonia.Value, len(p.steps))
	for i := len(p.steps) - 1; i >= 0; i-- {
		s := p.steps[i]
		v, err := s.compute(values, given, training)
		if err != nil {
			return nil, fmt.Errorf("node %v: %w", s.node, err)
		}
		values[s.node] = v
		for _, n := range s.last {
			delete(values, n)
		}
	}
	return values, nil
}

func (s step) compute(values, given map[*gorgonia.Node]gorgonia.Value, training bool) (v gorgonia.Value, err error) {
	op := s.node.Op()
	if op == nil {
		if v = given[s.node]; v == nil {
			v = s.node.Value()
		}
		if v == nil {
			return nil, errors.New("the variable has no value: return it as an input or a learnable, or give it one with gorgonia.WithValue")
		}
		return v, nil
	}
	if mode, ok := op.(gorgonia.TrainModeOp); ok {
		if err := mode.SetTraining(training); err != nil {
			return nil, err
		}
	}
	in := make([]gorgonia.Value, len(s.children))
	for i, c := range s.children {
		in[i] = values[c]
	}
	err = guard(func() (err error) {
		v, err = op.Do(in...)
		return err
	})
	if err == nil && v == nil {
		err = fmt.Errorf("the operation %v returned no value", op)
	}
	return v, err
}

// guard calls fn, which goes into Gorgonia, and turns a panic into an error.
func guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return fn()
}
