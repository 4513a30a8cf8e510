package place

import (
	"cmp"
	"fmt"
	"slices"
)

// Strategy is a rule for placing one job.
type Strategy interface {
	// Name is the name by which users choose the rule.
	Name() string
	// Place books the job's tasks in the space and returns where they are, or nil, and books nothing, if the rule
	// cannot place all of them: a job starts whole or not at all.
	Place(s *Space, j *Job) Placement
}

// Strategies returns every rule.
func Strategies() []Strategy {
	return []Strategy{Optimus{}, Optimus{Paper: true}, Spread{}, Pack{}, MostFree{}}
}

// ByName returns the rule of a name.
func ByName(name string) (Strategy, error) {
	var names []string
	for _, s := range Strategies() {
		if s.Name() == name {
			return s, nil
		}
		names = append(names, s.Name())
	}
	return nil, fmt.Errorf("place: there is no rule %q; choose one of %q", name, names)
}

// SmallestFirst returns the order in which to place jobs so that large ones starve no small one: by increasing
// dominant share of what all tasks of a job need, equal ones as listed (§4.2).
func SmallestFirst(s *Space, jobs []Job) []int {
	order, size := make([]int, len(jobs)), make([]float64, len(jobs))
	for i := range jobs {
		order[i] = i
		size[i], _ = s.Share(func(r int) int64 { return jobs[i].need(jobs[i].Tasks, r) })
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size[a], size[b]) })
	return order
}

// book takes a placement that is complete and returns it tidied; anything else becomes nil.
func book(s *Space, j *Job, p Placement) Placement {
	if p == nil || p.Total() != j.Tasks {
		return nil
	}
	if p = tidy(p); !s.Take(j, p) {
		return nil
	}
	return p
}
