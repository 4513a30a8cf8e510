package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/internal/suggest"
	"optimus/paa"
	"optimus/spec"
)

// planOf is the JSON form of one plan.
type planOf struct {
	Workload   string `json:"workload"`
	Rule       string `json:"rule"`
	Parameters int    `json:"parameters"`
	Blocks     int    `json:"blocks"`
	paa.Stats
}

func planCommand(a *app) *cobra.Command {
	var servers int
	var rule string
	c := &cobra.Command{
		Use:   "plan WORKLOAD",
		Short: "Show how a model's parameters would be spread over servers",
		Long: `Show how a model's parameters would be spread over servers, before anything runs.

Without --rule all rules are compared; the forms for programs then show "paa".`,
		Example: "  optimus plan resnet-50 --servers 10\n  optimus plan resnet-50 --servers 10 --rule mxnet -o json",
		RunE: func(c *cobra.Command, args []string) error {
			model, err := lookupModel(args[0])
			if err != nil {
				return err
			}
			if servers < 1 || servers > spec.MaxMembers {
				err := fmt.Errorf("--servers is %d; allowed: 1 to %d", servers, spec.MaxMembers)
				if !c.Flags().Changed("servers") {
					err = fmt.Errorf("missing --servers")
				}
				return usageError(c, err, "")
			}
			if rule != "" && !slices.Contains(paa.Rules(), rule) {
				return usageError(c, fmt.Errorf("unknown rule %q", rule), suggest.Meant(rule, paa.Rules()))
			}
			return a.plan(model, servers, rule)
		},
	}
	c.Flags().IntVar(&servers, "servers", 0, "number of parameter servers")
	c.Flags().StringVar(&rule, "rule", "", fmt.Sprintf("assignment rule, one of %v (default: compare them)", paa.Rules()))
	return c
}

// lookupModel finds a model whose blocks are known.
func lookupModel(name string) (paa.Model, error) {
	model, err := paa.Lookup(name)
	if err != nil {
		return paa.Model{}, failure.E("plan", "", failure.InvalidArgument, err, "")
	}
	return model, nil
}

func (a *app) plan(model paa.Model, servers int, rule string) error {
	rules := []string{rule}
	switch {
	case rule == "" && a.forPeople():
		rules = paa.Rules()
	case rule == "":
		rules[0] = paa.RulePAA
	}
	plans := make([]planOf, len(rules))
	for i, r := range rules {
		assignment, err := paa.Assign(r, model.Sizes, servers)
		if err != nil {
			return failure.E("plan", model.Name, failure.Internal, err, "")
		}
		plans[i] = planOf{Workload: model.Name, Rule: r, Parameters: model.Parameters(), Blocks: len(model.Sizes), Stats: assignment.Stats()}
	}
	if len(plans) > 1 {
		return a.print(plans, comparison(plans))
	}
	return a.print(plans[0], plans[0].table(a.format != asName))
}

// comparison has one row per rule.
func comparison(plans []planOf) table {
	t := table{columns: []string{"RULE", "SERVERS", "LARGEST", "SMALLEST", "SIZE GAP", "MAX/MEAN", "REQUESTS", "REQUEST GAP", "+PARAMETERS", "+BLOCKS"}}
	for _, p := range plans {
		largest, smallest := 0, p.Parameters
		for _, s := range p.Servers {
			largest, smallest = max(largest, s.Parameters), min(smallest, s.Parameters)
		}
		t.rows = append(t.rows, []string{
			p.Rule, fmt.Sprint(len(p.Servers)), humanCount(largest), humanCount(smallest), humanCount(p.SizeGap),
			fmt.Sprintf("%.3f", p.MaxOverMean), fmt.Sprint(p.Requests), fmt.Sprint(p.RequestGap),
			fmt.Sprint(p.Parameters), fmt.Sprint(p.Blocks),
		})
	}
	return t
}

// table has one row per server, then, if asked for, the totals and the gaps.
func (p planOf) table(sums bool) table {
	t := table{columns: []string{"SERVER", "PARAMETERS", "PIECES"}}
	row := func(name string, parameters, pieces int) {
		t.rows = append(t.rows, []string{name, fmt.Sprint(parameters), fmt.Sprint(pieces)})
	}
	for i, s := range p.Servers {
		row(fmt.Sprint(i), s.Parameters, s.Pieces)
	}
	if sums {
		row("total", p.Parameters, p.Requests)
		row("gap", p.SizeGap, p.RequestGap)
	}
	return t
}
