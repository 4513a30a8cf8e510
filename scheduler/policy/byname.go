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
		{"tetris", TwoStage{Allocator: Tetris{Round: 600}, Place: place.Pack{}, Keep: true, Shrink: true}},
		{"fifo", TwoStage{Allocator: FIFO{}, Place: place.Spread{}, Shrink: true}},
		{"srtf", TwoStage{Allocator: SRTF{}, Place: place.Spread{}, Shrink: true}},
		{"tiresias", Tiresias{}},
		{"pollux", Pollux{P: -1, Delay: 30}},
		{"pollux-artifact", Pollux{P: -1, Delay: 30, MaxGPUs: 64, MaxNodes: 16, Quirks: Artifact()}},
		{"ring", onFewNodes(Ring{})},
		{"ring-any", onFewNodes(Ring{Any: true})},
		{"ring-explore", onFewNodes(Explore{})},
		{"ring-eight", onFewNodes(Fixed{8})},
		{"ring-four", onFewNodes(Fixed{4})},
		{"ring-two", onFewNodes(Fixed{2})},
		{"ring-one", onFewNodes(Fixed{1})},
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
