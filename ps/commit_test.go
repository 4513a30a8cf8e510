package ps_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/elastic"
	"optimus/ps/pieces"
	"optimus/transport"
)

// A worker may hear of a commit before a server does. A server that stands still
// refuses pushes of the generation that ends, and takes those of the next one:
// they are applied once, with the commit.
func TestPushBeforeCommit(t *testing.T) {
	for name, test := range map[string]struct {
		store pieces.Mode
		mode  elastic.Mode
	}{"bsp": {pieces.BSP, elastic.BSP}, "asp": {pieces.ASP, elastic.ASP}, "ssp": {pieces.SSP, elastic.SSP}} {
		t.Run(name, func(t *testing.T) {
			network := transport.InProcess()
			old, servers := start(t, network, storeConfig(test.store), 2, 1)
			c := newClient(t, network, workers(1)[0], mode(test.mode))
			c.pull(old, 1, all())
			c.push(old, 1)
			want := initial()
			apply(want, 1, 0)

			g := generation(t, 2, old, servers, workers(1))
			for _, s := range servers {
				s.tell(elastic.Message{Kind: elastic.Halt, Gen: 1, Source: elastic.FromSelf})
				s.next(elastic.Halted)
			}
			prepare(old, g, elastic.FromSelf, servers...)
			for _, s := range servers {
				s.tell(elastic.Message{Kind: elastic.Switch, Gen: 2, Step: 1, Rewind: 1})
				s.until(elastic.Moved)
			}
			if err := c.tryPush(t.Context(), old, 2); !errors.Is(err, elastic.ErrRefresh) {
				t.Errorf("a push of the generation that ends: %v, want ErrRefresh", err)
			}
			if test.mode == elastic.SSP {
				commit(g, 1, servers[0]) // the other one is asked for the clock again and again
				go commit(g, 1, servers[1])
				c.push(g, 2)
			} else {
				c.push(g, 2)
				c.push(g, 2) // its answer was lost
				commit(g, 1, servers...)
			}
			for _, s := range servers { // a halt is answered after the commit
				s.tell(elastic.Message{Kind: elastic.Halt, Gen: 2})
				s.next(elastic.Halted)
			}
			apply(want, 2, 0)
			if diff := cmp.Diff(want, c.pull(g, 3, all()), closely); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a generation that was dropped would have got is not sent any more, however
// late its boundary is reached, and that its version is gone by then is no failure.
func TestDroppedIsNotSent(t *testing.T) {
	network := transport.InProcess()
	old, servers := start(t, network, storeConfig(pieces.BSP), 1, 1)
	c := newClient(t, network, workers(1)[0])
	newcomer := serve(t, network, 1, storeConfig(pieces.BSP))
	g := generation(t, 2, old, []*server{servers[0], newcomer}, workers(1))
	prepare(old, g, elastic.FromPeers, servers[0], newcomer)
	for _, s := range []*server{servers[0], newcomer} {
		s.tell(elastic.Message{Kind: elastic.Switch, Gen: 2, Step: 2, Rewind: 2})
		s.tell(elastic.Message{Kind: elastic.Drop, Gen: 2})
	}
	servers[0].tell(elastic.Message{Kind: elastic.Snapshot, Gen: 1, ID: 1, Step: 100})
	servers[0].next(elastic.Armed) // it has taken the drop
	for step := int64(1); step <= 5; step++ {
		c.pull(old, step, all())
		c.push(old, step)
	}
	c.pull(old, 6, all())
	servers[0].tell(elastic.Message{Kind: elastic.Halt, Gen: 1})
	if m := servers[0].next(elastic.Halted); m.Step != 5 {
		t.Errorf("halted at version %d, want 5", m.Step)
	}
}
