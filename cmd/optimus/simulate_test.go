package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"optimus/internal/shared"
	"optimus/scheduler/policy"
)

// tied writes a workload of n jobs in bunches that are submitted at the same second and
// equal but for their names, in an order by seed.
func tied(t *testing.T, n int, seed uint64) string {
	t.Helper()
	lines := make([]string, n)
	for i := range lines {
		app := []string{"ncf,1,32768", "cifar10,4,2048"}[i/20%2]
		lines[i] = fmt.Sprintf("job-%d,%d,%s\n", i, 60*(i/10), app)
	}
	rand.New(rand.NewPCG(39, seed)).Shuffle(n, func(i, k int) { lines[i], lines[k] = lines[k], lines[i] })
	path := filepath.Join(t.TempDir(), "tied.csv")
	if err := os.WriteFile(path, []byte("name,time,application,num_replicas,batch_size\n"+strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// BO-39: equal runs give equal bytes, in separate processes, on 1 and 16 threads, and
// whatever the order of the jobs in the file; another seed gives others.
func TestBO39EqualRuns(t *testing.T) {
	t.Parallel()
	profiles := shared.Dir(t, "pollux")
	simulate := func(t *testing.T, threads int, args ...string) []byte {
		t.Helper()
		args = append([]string{"simulate", "--profiles", profiles, "-o", "json", "--no-timing"}, args...)
		cmd := exec.CommandContext(t.Context(), "optimus", args...) // testscript.Main has put it on the PATH
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", threads))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out
	}
	const processes = 20
	t.Run("ties", func(t *testing.T) {
		args := []string{"--policy", "optimus,tiresias", "--nodes", "16", "--speed-error", "0.2"}
		var first []byte
		for i := range processes {
			out := simulate(t, 1+15*(i%2), append(args, "--workload", tied(t, 200, uint64(i)))...)
			if first == nil {
				first = out
			}
			if !bytes.Equal(first, out) {
				t.Fatalf("process %d printed other bytes than the first", i)
			}
		}
		var results []simulated
		if err := json.Unmarshal(first, &results); err != nil || len(results) != 2 || len(results[0].Jobs) != 200 || results[0].Impossible > 0 {
			t.Fatalf("%d results, %v", len(results), err)
		}
		other := simulate(t, 1, append(args, "--workload", tied(t, 200, 0), "--seed", "2")...)
		if bytes.Equal(first, other) {
			t.Error("another seed gave the same bytes")
		}
	})
	t.Run("a search", func(t *testing.T) {
		args := []string{"--policy", "pollux", "--nodes", "4", "--interval", "5m"}
		first := simulate(t, 1, append(args, "--workload", tied(t, 40, 1))...)
		second := simulate(t, 16, append(args, "--workload", tied(t, 40, 2))...)
		if !bytes.Equal(first, second) {
			t.Error("two processes printed different bytes")
		}
	})
}

// BO-39: the order of the nodes does not matter either.
func TestBO39NodesInAnyOrder(t *testing.T) {
	o := scenarioOptions{profiles: shared.Dir(t, "pollux"), gpus: 4, set: benchCommand(&app{}).Flags()}
	o.workload = tied(t, 60, 1)
	w, err := o.readWorkload("simulate")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"optimus", "tiresias"} {
		p, err := policy.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		var first []byte
		for i := range uint64(5) {
			s, err := o.load("simulate", w, 6)
			if err != nil {
				t.Fatal(err)
			}
			nodes := s.config.Nodes
			rand.New(rand.NewPCG(39, i)).Shuffle(len(nodes), func(i, k int) { nodes[i], nodes[k] = nodes[k], nodes[i] })
			r, err := s.run(t.Context(), p, false)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = text
			}
			if !bytes.Equal(first, text) {
				t.Errorf("%s: another order of the nodes gave another result", name)
			}
		}
	}
}

// The number found reaches the target and one less does not, for every threshold.
func TestFewestNodes(t *testing.T) {
	for low := 1; low <= 4; low++ {
		for high := low; high <= 40; high++ {
			for need := 1; need <= high+1; need++ {
				tried := map[int]bool{}
				got, err := fewestNodes(low, high, func(n int) (bool, error) {
					if n < low || n > high || tried[n] {
						t.Fatalf("%d to %d, %d needed: tried %d nodes, or twice", low, high, need, n)
					}
					tried[n] = true
					return n >= need, nil
				})
				want := max(low, need)
				if need > high {
					want = 0
				}
				if err != nil || got != want {
					t.Fatalf("%d to %d, %d needed: found %d, %v", low, high, need, got, err)
				}
			}
		}
	}
}
