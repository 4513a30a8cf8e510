package policy

import (
	"fmt"

	"optimus/scheduler/place"
)

// Policies returns every policy.
func Policies() []Policy {
	return []Policy{
		{"optimus", TwoStage{Allocator: Optimus{Best()}, Place: place.Optimus{}, SmallestFirst: true, Keep: true, Shrink: true}},
		{"optimus-paper", TwoStage{Allocator: Optimus{}, Place: place.Optimus{Paper: true}, SmallestFirst: true}},
		// Pollux's baseline has jobs without ps and one resource, the GPU, in which the paper's rule needs no option.
		{"optimus+oracle", TwoStage{Allocator: Optimus{}, Place: place.MostFree{}, SmallestFirst: true, Keep: true}},
		{"drf", TwoStage{Allocator: DRF{}, Place: place.Spread{}, Shrink: true}},
		{"tetris", TwoStage{Allocator: Tetris{}, Place: place.Pack{}, Shrink: true}},
		{"fifo", TwoStage{Allocator: FIFO{}, Place: place.Spread{}, Shrink: true}},
		{"srtf", TwoStage{Allocator: SRTF{}, Place: place.Spread{}, Shrink: true}},
	}
}

// ByName returns the policy of a name.
func ByName(name string) (Policy, error) {
	var names []string
	for _, p := range Policies() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Policy{}, fmt.Errorf("policy: there is no policy %q; choose one of %q", name, names)
}
