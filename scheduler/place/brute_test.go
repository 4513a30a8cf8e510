package place

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// bruteForce returns the least traffic over all placements of a job, or −1 if it cannot be placed.
func bruteForce(s *Space, j *Job) int {
	best := -1
	var try func(node int, left Counts, p Placement)
	try = func(node int, left Counts, p Placement) {
		if left == (Counts{}) {
			if t := Traffic(p); best < 0 || t < best {
				best = t
			}
			return
		}
		if node == s.Len() {
			return
		}
		for ps := range left[PS] + 1 {
			for w := range left[Worker] + 1 {
				c := Counts{ps, w}
				if !j.fits(c, s.Free(node)) {
					break
				}
				if best >= 0 && shareTraffic(c, j.Tasks) >= best {
					continue
				}
				try(node+1, Counts{left[PS] - ps, left[Worker] - w}, append(p, Share{Node: node, Tasks: c}))
			}
		}
	}
	try(0, j.Tasks, nil)
	return best
}

// randomCase draws up to 4 nodes and a job of up to 6 ps and 9 workers.
func randomCase(rng *rand.Rand, equal bool) ([]Node, Job) {
	nodes := make([]Node, 1+rng.IntN(4))
	for i := range nodes {
		nodes[i] = Node{ID: fmt.Sprint("n", i), Capacity: Vector{int64(2 + rng.IntN(14)), int64(rng.IntN(12))}}
		if equal {
			nodes[i].Capacity = nodes[0].Capacity
		}
	}
	j := Job{ID: "j", Tasks: Counts{1 + rng.IntN(6), 1 + rng.IntN(9)}}
	j.Demand[PS] = Vector{int64(1 + rng.IntN(2)), 0}
	j.Demand[Worker] = Vector{int64(1 + rng.IntN(2)), int64(rng.IntN(2))}
	return nodes, j
}

// TestPlacementAgainstBruteForce: the least traffic on equal nodes wherever the number of nodes divides p and w, which
// is what Theorem 1 claims, and at most 1.5 times the least everywhere. Nodes of different shapes are outside of the
// theorem; some placements there are not optimal.
func TestPlacementAgainstBruteForce(t *testing.T) {
	for _, equal := range []bool{true, false} {
		t.Run(fmt.Sprintf("equal nodes %v", equal), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			placed, divisible, optimal, missed, worst := 0, 0, 0, 0, 1.0
			for placed < 1000 {
				nodes, j := randomCase(rng, equal)
				s, err := NewSpace(nodes)
				if err != nil {
					t.Fatal(err)
				}
				least := bruteForce(s, &j)
				if least < 0 {
					if p := (Optimus{}).Place(s, &j); p != nil {
						t.Fatalf("%v on %v: placed %v, brute force finds none", j, nodes, p)
					}
					continue
				}
				placed++
				p := Optimus{}.Place(s, &j)
				if p == nil {
					missed++
					t.Errorf("%v on %v: not placed; traffic %d is possible", j, nodes, least)
					continue
				}
				got := Traffic(p)
				if got == least {
					optimal++
				} else if least == 0 || float64(got) > 1.5*float64(least) {
					t.Errorf("%v on %v: placed %v with traffic %d, least is %d", j, nodes, p, got, least)
				} else {
					worst = max(worst, float64(got)/float64(least))
				}
				if k := len(p); equal && j.Tasks[PS]%k == 0 && j.Tasks[Worker]%k == 0 {
					divisible++
					if got != least {
						t.Errorf("%v on %v: %d nodes divide the job, but %v has traffic %d, least is %d", j, nodes, k, p, got, least)
					}
				}
			}
			t.Logf("%d placed: %d optimal, worst ratio %.3f, %d not placed; %d where K divides p and w", placed, optimal, worst, missed, divisible)
		})
	}
}

// shareTraffic returns what one node's share adds to the maximum that Traffic takes.
func shareTraffic(c, total Counts) int {
	most := 0
	if c[PS] > 0 {
		most = total[Worker] - c[Worker]
	}
	if c[Worker] > 0 {
		most = max(most, total[PS]-c[PS])
	}
	return most
}
