package ps_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute/optim"
	"optimus/elastic"
	"optimus/internal/faultnet"
	"optimus/internal/wire"
	"optimus/ps"
	"optimus/ps/pieces"
	"optimus/transport"
)

// stateful is a configuration whose optimizer keeps two arrays of state.
func stateful() pieces.Config {
	c := storeConfig(pieces.BSP)
	c.Optimizer = optim.Default(optim.Adam)
	return c
}

// digests sums what the servers report until the last piece is in place, and
// checks that the new owners hold what the old ones had.
func digests(t *testing.T, g *elastic.Generation, step int64, servers ...*server) (sum elastic.Message) {
	t.Helper()
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Switch, Gen: g.Number, Step: step})
	}
	var there elastic.Message
	for _, s := range servers {
		last := elastic.Extracted
		if g.Index(s.Member) >= 0 {
			last = elastic.Moved
		}
		for _, m := range s.until(last) {
			switch m.Kind {
			case elastic.Extracted:
				there.Params, there.State = there.Params+m.Params, there.State+m.State
			case elastic.Moved:
				sum.Params, sum.State = sum.Params+m.Params, sum.State+m.State
				sum.Elements, sum.Bytes, sum.AuxBytes = sum.Elements+m.Elements, sum.Bytes+m.Bytes, sum.AuxBytes+m.AuxBytes
			}
		}
	}
	if there.Params != sum.Params || there.State != sum.State || sum.Params == 0 || sum.State == 0 {
		t.Errorf("generation %d: digests %x, %x left, %x, %x arrived", g.Number, there.Params, there.State, sum.Params, sum.State)
	}
	return sum
}

// Pieces move between servers with their optimizer's state, while a worker is
// already a step into the next generation, and over connections that break and repeat. The
// job's numbers are, bit for bit, those of a job that never moved.
func TestPiecesMove(t *testing.T) {
	calm := transport.InProcess()
	undisturbed, _ := start(t, calm, stateful(), 1, 1)
	reference := newClient(t, calm, workers(1)[0])

	network := transport.InProcess()
	cuts := faultnet.Wrap(network, faultnet.First(
		faultnet.Nth(1, faultnet.Answers(wire.MoveAck), faultnet.Action{Do: faultnet.Cut}),
		faultnet.Every(faultnet.Requests(wire.Move), faultnet.Action{Do: faultnet.Duplicate})))
	g, servers := start(t, cuts, stateful(), 1, 1)
	c := newClient(t, network, workers(1)[0])
	step := int64(1)
	train := func(pull, push *elastic.Generation) {
		t.Helper()
		if diff := cmp.Diff(reference.pull(undisturbed, step, all()), c.pull(pull, step, all())); diff != "" {
			t.Fatalf("before step %d (-undisturbed +moved):\n%s", step, diff)
		}
		reference.push(undisturbed, step)
		c.push(push, step)
		step++
	}
	train(g, g)
	train(g, g)
	for _, count := range []int{3, 2, 1} {
		everyone := slices.Clone(servers)
		for i := len(servers); i < count; i++ {
			servers = append(servers, serve(t, cuts, i, stateful()))
			everyone = append(everyone, servers[i])
		}
		servers = servers[:count]
		next := generation(t, g.Number+1, g, servers, workers(1))
		prepare(g, next, elastic.FromPeers, everyone...)
		moved := digests(t, next, step-1, everyone...)
		var want elastic.Message
		for _, m := range elastic.Moves(g, next) {
			if m.Aux {
				want.AuxBytes += int64(m.Size) * 4
			} else {
				want.Elements += int64(m.Size)
				want.Bytes += int64(m.Size) * 4 * 3
			}
		}
		moved.Params, moved.State = 0, 0
		if diff := cmp.Diff(want, moved); diff != "" {
			t.Errorf("moved to %d servers (-want +got):\n%s", count, diff)
		}
		train(g, next) // set aside until the commit
		commit(next, step-2, everyone...)
		for _, s := range everyone[count:] {
			check(t, s.dismiss())
		}
		g = next
		train(g, g)
	}
	train(g, g)
}

// After a halt nothing is taken any more and workers are told to ask for news. A
// new generation then goes on from the version that all servers hold; what was
// pushed of the next one is forgotten, and so is who pushed it.
func TestRecovery(t *testing.T) {
	network := transport.InProcess()
	old, servers := start(t, network, stateful(), 2, 2)
	lost, stays := newClient(t, network, workers(2)[0]), newClient(t, network, workers(2)[1])
	for _, c := range []*client{lost, stays} {
		c.push(old, 1)
	}
	want := stays.pull(old, 2, all())
	lost.push(old, 2)
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Halt, Gen: 2})
		if m := s.next(elastic.Halted); m.Step != 1 || m.Gen != 2 {
			t.Errorf("%s halted at %d for generation %d, want 1 for 2", s.Member, m.Step, m.Gen)
		}
	}
	if err := stays.tryPush(t.Context(), old, 2); !errors.Is(err, elastic.ErrRefresh) {
		t.Errorf("a push after the halt: %v, want %v", err, elastic.ErrRefresh)
	}
	heir := elastic.Member{Role: elastic.Worker, ID: 0, Incarnation: 9}
	g := generation(t, 2, old, servers, []elastic.Member{heir, stays.self})
	prepare(old, g, elastic.FromSelf, servers...)
	for _, s := range servers {
		s.tell(elastic.Message{Kind: elastic.Switch, Gen: 2, Step: 1, Rewind: 1})
		s.until(elastic.Moved)
	}
	newClient(t, network, heir).push(g, 2) // it knows of the commit before the servers do
	commit(g, 1, servers...)
	if diff := cmp.Diff(want, stays.pull(g, 2, all())); diff != "" {
		t.Errorf("version 1 after the recovery:\n%s", diff)
	}
	if err := lost.tryPush(t.Context(), old, 2); !errors.Is(err, elastic.ErrRefresh) {
		t.Errorf("a push of the old generation: %v, want %v", err, elastic.ErrRefresh)
	}
	if err := lost.tryPush(t.Context(), g, 2); err == nil || !strings.Contains(err.Error(), "it was replaced") {
		t.Errorf("a push of the worker that was replaced: %v", err)
	}
	stays.push(g, 2)

	calm := transport.InProcess()
	undisturbed, _ := start(t, calm, stateful(), 2, 2)
	for step := int64(1); step <= 2; step++ {
		for _, m := range workers(2) {
			newClient(t, calm, m).push(undisturbed, step)
		}
	}
	if diff := cmp.Diff(newClient(t, calm, workers(2)[0]).pull(undisturbed, 3, all()), stays.pull(g, 3, all())); diff != "" {
		t.Errorf("version 2 (-undisturbed +recovered):\n%s", diff)
	}
}

// A generation that is dropped leaves the ruling one as it was.
func TestDroppedGeneration(t *testing.T) {
	network := transport.InProcess()
	g, servers := start(t, network, stateful(), 1, 1)
	c := newClient(t, network, workers(1)[0])
	c.push(g, 1)
	both := append(servers, serve(t, network, 1, stateful()))
	next := generation(t, 2, g, both, workers(1))
	prepare(g, next, elastic.FromPeers, both...)
	digests(t, next, 1, both...)
	c.push(next, 2)
	for _, s := range both {
		s.tell(elastic.Message{Kind: elastic.Drop, Gen: 2})
	}
	check(t, both[1].dismiss())
	want := c.pull(g, 2, all())
	c.push(g, 2)
	if diff := cmp.Diff(want, c.pull(g, 3, all())); diff == "" {
		t.Error("step 2 changed nothing")
	}
	if err := c.tryPush(t.Context(), next, 3); !errors.Is(err, elastic.ErrRefresh) {
		t.Errorf("a push of the dropped generation: %v, want %v", err, elastic.ErrRefresh)
	}
}

// A generation begins with a checkpoint's values, and a server whose pieces are
// not all in it says which.
func TestRestore(t *testing.T) {
	parts := make(chan []pieces.Part, 1)
	save := func(c *ps.ServerConfig) {
		c.Write = func(_, _ int64, _ int, p []pieces.Part) (json.RawMessage, error) {
			var list []pieces.Part
			for _, x := range p { // the arrays are the server's own
				x.Params = slices.Clone(x.Params)
				for i := range x.Slots {
					x.Slots[i] = slices.Clone(x.Slots[i])
				}
				list = append(list, x)
			}
			parts <- list
			return nil, nil
		}
	}
	network := transport.InProcess()
	g, servers := start(t, network, stateful(), 1, 1, save)
	c := newClient(t, network, workers(1)[0])
	c.push(g, 1)
	servers[0].tell(elastic.Message{Kind: elastic.Snapshot, Gen: 1, ID: 1, Step: 1})
	saved := receive(t, parts, "the snapshot")
	c.push(g, 2)
	want := c.pull(g, 3, all())

	for name, hole := range map[string]bool{"whole": false, "without the bias": true} {
		t.Run(name, func(t *testing.T) {
			network := transport.InProcess()
			read := func(c *ps.ServerConfig) {
				c.Read = func(path string, ids []pieces.ID, fill func(pieces.Part) error) error {
					if path != "ckpt" {
						return errors.New("no such checkpoint")
					}
					for _, p := range saved {
						if hole && p.Block == bias {
							continue
						}
						if err := fill(p); err != nil {
							return err
						}
					}
					return nil
				}
			}
			s := serve(t, network, 0, stateful(), read)
			g := generation(t, 1, nil, []*server{s}, workers(1))
			s.tell(elastic.Message{Kind: elastic.Prepare, Gen: 1, Next: g, Source: elastic.FromCheckpoint, Checkpoint: "ckpt"})
			s.next(elastic.Prepared)
			s.tell(elastic.Message{Kind: elastic.Switch, Gen: 1, Step: 1})
			if hole {
				if m := s.next(elastic.Failed); !strings.Contains(m.Reason, "nobody sends range {2 0 3}") {
					t.Errorf("the reason is %q", m.Reason)
				}
				return
			}
			s.next(elastic.Moved)
			commit(g, 1, s)
			c := newClient(t, network, workers(1)[0])
			c.push(g, 2)
			if diff := cmp.Diff(want, c.pull(g, 3, all())); diff != "" {
				t.Errorf("version 2 (-saved from +restored):\n%s", diff)
			}
		})
	}
}
