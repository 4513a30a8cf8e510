package train

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"optimus/elastic"
	"optimus/internal/rundir"
	"optimus/launch"
	"optimus/transport"
)

// goroutines runs members in this process.
type goroutines struct {
	c       *coordinator
	network transport.Network
	log     *slog.Logger
	tune    tuning
	slow    func(elastic.Member) func()
	mu      sync.Mutex
	cancel  map[elastic.Member]context.CancelCauseFunc
	wg      sync.WaitGroup
}

func (g *goroutines) start(m elastic.Member) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	g.mu.Lock()
	g.cancel[m] = cancel
	g.mu.Unlock()
	q := newQueue()
	g.c.attach(m, q)
	run := &member{self: m, layout: g.c.layout, task: g.c.task, network: g.network, log: g.log, tune: g.tune,
		link: &pipe{in: q, deliver: g.c.receive}}
	if g.slow != nil && m.Role == elastic.Worker {
		run.slow = g.slow(m)
	}
	g.wg.Go(func() {
		err := run.run(ctx)
		cancel(nil)
		q.close()
		cause := "left"
		if err != nil {
			cause = err.Error()
		}
		g.c.exited(m, cause)
	})
	return nil
}

func (g *goroutines) kill(m elastic.Member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if cancel := g.cancel[m]; cancel != nil {
		cancel(fmt.Errorf("%s was ended", m))
		delete(g.cancel, m)
	}
}

func (g *goroutines) close() { g.wg.Wait() }

// processes runs each member as a child process.
type processes struct {
	c        *coordinator
	children *launch.Processes
	dir      *rundir.Dir
	layout   string // path
	socket   string
	args     []string // of this program, before the member's own
	mu       sync.Mutex
	running  map[elastic.Member]*launch.Child
}

func newProcesses(c *coordinator, o Options, dir *rundir.Dir, socket string) *processes {
	return &processes{c: c, children: launch.NewProcesses(), dir: dir, layout: dir.Spec(), socket: socket, args: o.Child,
		running: map[elastic.Member]*launch.Child{}}
}

func (p *processes) start(m elastic.Member) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	args := append(append([]string{}, p.args...), "--layout", p.layout, "--socket", p.socket, "--role", string(m.Role),
		"--id", fmt.Sprint(m.ID), "--incarnation", fmt.Sprint(m.Incarnation))
	p.mu.Lock() // until the child is noted: it may end at once
	defer p.mu.Unlock()
	child, err := p.children.Start(exe, args, nil, p.dir.Log(string(m.Role), m.ID, int64(m.Incarnation)), func(cause string) {
		p.mu.Lock()
		delete(p.running, m)
		p.mu.Unlock()
		p.c.exited(m, cause)
	})
	if err != nil {
		return err
	}
	p.running[m] = child
	return nil
}

func (p *processes) kill(m elastic.Member) {
	p.mu.Lock()
	child := p.running[m]
	p.mu.Unlock()
	if child != nil {
		child.Kill()
	}
}

func (p *processes) close() { p.children.Close() }
