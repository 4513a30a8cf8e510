package elastic

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"optimus/data/order"
)

// TestScripts plays the interaction scripts in testdata, one verb a block, what
// the controller did beneath it. After a change that is meant to show there, run
// `go test ./elastic -run TestScripts -rewrite` and read the difference.
//
//	new [mode=bsp] [steps=N] [min=N] [every=N]   a controller
//	start P W                                     launch the first generation
//	run [until=STEP]                              deliver everything, until that step
//	deliver N                                     deliver N messages or actions only
//	to-complete server ID                         deliver until all that it holds has arrived elsewhere
//	to-phase PHASE                                deliver until a transition is in it
//	rescale P W | checkpoint | stop | leave ROLE ID | kill ROLE ID | bad STEP
//	zombie ROLE ID                                lost for the controller, but it lives on
//	from ROLE ID KIND                             a message of the last zombie of that id
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{t: t}
			var out []string
			for _, block := range strings.Split(strings.TrimSpace(string(raw)), "\n\n") {
				input, _, _ := strings.Cut(block, "\n----")
				lines := strings.Split(input, "\n")
				got := input + "\n----\n" + strings.TrimSpace(s.do(strings.Fields(lines[len(lines)-1])))
				out = append(out, got)
				if !*rewrite && got != strings.TrimSpace(block) {
					t.Errorf("want:\n%s\ngot:\n%s", block, got)
				}
			}
			if *rewrite {
				if err := os.WriteFile(path, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var rewrite = flag.Bool("rewrite", false, "write what the scripts print into testdata")

type script struct {
	t    *testing.T
	w    *world
	gone map[string]Member
}

func (s *script) do(words []string) string {
	verb, rest := words[0], words[1:]
	set := map[string]int64{}
	var args []int
	mode := BSP
	for _, a := range rest {
		key, value, _ := strings.Cut(a, "=")
		n, err := strconv.Atoi(value)
		if key == "mode" {
			mode = Mode(value)
		} else if err == nil {
			set[key] = int64(n)
		} else if n, err = strconv.Atoi(a); err == nil {
			args = append(args, n)
		}
	}
	if verb == "new" {
		s.w = newWorld(s.t, 1, Config{Mode: mode, Plan: order.Plan{Seed: 1, Examples: 40, Batch: 4}, Steps: set["steps"], Epochs: 2, Chunk: 8,
			Sizes: []int{6, 4}, MinWorkers: int(set["min"]), CheckpointEvery: set["every"], Detect: 100, LeaseTicks: 3})
		s.gone = map[string]Member{}
		return "ok"
	}
	w := s.w
	switch verb {
	case "start":
		if err := w.ctl.Start(args[0], args[1], nil); err != nil {
			return err.Error()
		}
	case "run":
		s.play(func() bool { return set["until"] > 0 && w.ctl.Done() >= set["until"] })
	case "deliver":
		n := 0
		s.play(func() bool { n++; return n > args[0] })
	case "to-phase":
		s.play(func() bool { return w.ctl.next != nil && w.ctl.next.phase == Phase(rest[0]) })
	case "to-complete":
		m := s.member(rest)
		s.play(func() bool { return w.ctl.next != nil && w.ctl.next.phase == phaseSwitch && w.ctl.superfluous(m) })
	case "rescale":
		w.commands++
		w.ctl.Rescale(w.commands, args[0], args[1])
	case "checkpoint":
		w.commands++
		w.ctl.Checkpoint(w.commands)
	case "stop":
		w.ctl.Stop(true, "stopped on command")
	case "bad":
		w.bad[int64(args[0])] = true
	case "leave":
		w.send(s.member(rest), Message{Kind: Leaving})
	case "kill":
		w.kill(s.member(rest), false)
	case "zombie":
		m := s.member(rest)
		s.gone[rest[0]+rest[1]] = m
		w.lostAny = true
		w.ctl.Exited(m, "its link broke")
		w.ctl.out.Kill = nil
	case "from":
		m := s.gone[rest[0]+rest[1]]
		w.ctl.Receive(Message{Kind: Kind(rest[2]), From: m, Gen: 1, Step: 1, Report: &Report{}})
	default:
		s.t.Fatalf("unknown verb %q", verb)
	}
	w.drain()
	return s.output()
}

// play delivers in the scheduler's order until stop, or nothing is left.
func (s *script) play(stop func() bool) {
	for idle := 0; idle < 300; {
		if state, _ := s.w.ctl.State(); state.Final() || stop() {
			return
		}
		if s.w.step() {
			idle = 0
			continue
		}
		s.w.tick()
		idle++
	}
}

func (s *script) member(rest []string) Member {
	want := rest[0] + rest[1]
	for _, m := range append(sortedMembers(s.w.servers), sortedMembers(s.w.workers)...) {
		if string(m.Role)+fmt.Sprint(m.ID) == want {
			return m
		}
	}
	s.t.Fatalf("no member %s", want)
	return Member{}
}

// output shows what happened since the last verb, without the routine.
func (s *script) output() string {
	if len(s.w.shown) == 0 {
		return "ok"
	}
	out := strings.Join(s.w.shown, "\n")
	s.w.shown = nil
	return out
}
