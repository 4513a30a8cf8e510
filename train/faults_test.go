package train

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/wire"
	"optimus/transport"
)

// child is a member of a job of exact as a process of its own. What the flags say
// happens to it.
type child struct {
	layout, socket string
	self           elastic.Member
	hasty          string
	fault          fault
	retry          time.Duration
}

// childArgs are the arguments of a test's child processes: see parseChild.
func childArgs(hasty string, extra ...string) []string {
	return append([]string{"member", "--hasty", hasty}, extra...)
}

func parseChild(args []string) (c child) {
	fs := flag.NewFlagSet("member", flag.ExitOnError)
	fs.StringVar(&c.layout, "layout", "", "")
	fs.StringVar(&c.socket, "socket", "", "")
	fs.StringVar((*string)(&c.self.Role), "role", "", "")
	fs.IntVar(&c.self.ID, "id", 0, "")
	fs.Uint64Var(&c.self.Incarnation, "incarnation", 0, "")
	fs.StringVar(&c.hasty, "hasty", "", "")
	fs.DurationVar(&c.retry, "retry", 0, "")
	var f fault
	fs.Func("fault", "", func(s string) (err error) {
		f, err = parseFault(s)
		return err
	})
	fs.Parse(args)
	if f.incarnation == c.self.Incarnation {
		c.fault = f
	}
	return c
}

// run is RunMember with the test's task, pace and faults.
func (c child) run(ctx context.Context, log *slog.Logger) error {
	l, err := readLayout(c.layout)
	if err != nil {
		return err
	}
	if l.Job.Workload != exactTask().Name {
		return RunMember(ctx, c.layout, c.socket, c.self, log)
	}
	m := &member{self: c.self, layout: l, task: exactTask(), log: log, slow: pace(slow, c.hasty),
		network: transport.TCP("127.0.0.1", transport.Config{}), tune: tuning{Beat: 50 * time.Millisecond, Retry: c.retry}}
	link, err := dialLink(ctx, c.socket)
	if err != nil {
		return err
	}
	m.link = link
	if c.fault.signal != 0 {
		m.link = &patient{Link: link}
		m.network = &faulty{Network: m.network, self: c.self, fault: c.fault, checkpoints: l.Checkpoints}
	}
	return m.run(ctx)
}

// patient is the link of a member that was stopped: the word that dismisses it
// comes late, so that all that was under way goes out first.
type patient struct {
	elastic.Link
	once sync.Once
}

func (l *patient) Recv() (elastic.Message, error) {
	m, err := l.Link.Recv()
	if err == nil && m.Kind == elastic.Dismiss {
		l.once.Do(func() { time.Sleep(300 * time.Millisecond) })
	}
	return m, err
}

// fault sends a process a signal in the midst of a step: a worker before it sends
// its first push of the step, a server before it sends its nth answer to a push
// of the step. It waits for the job's first checkpoint.
type fault struct {
	incarnation uint64 // of the member that it happens to
	step        int64
	n           int
	signal      syscall.Signal
}

// String is what parseFault reads.
func (f fault) String() string {
	return fmt.Sprintf("%d,%d,%d,%d", f.incarnation, f.step, f.n, int(f.signal))
}

func parseFault(s string) (f fault, err error) {
	_, err = fmt.Sscanf(s, "%d,%d,%d,%d", &f.incarnation, &f.step, &f.n, (*int)(&f.signal))
	return f, err
}

// args are the child's arguments that make it happen.
func (f fault) args() []string { return []string{"--fault", f.String()} }

// faulty is the network of the process that a fault happens to. It writes to the
// process's log what becomes of the pushes that leave or reach it afterwards.
type faulty struct {
	transport.Network
	self        elastic.Member
	fault       fault
	checkpoints string // root

	mu    sync.Mutex
	count int
	over  bool // the signal was sent, and the process goes on
}

func (n *faulty) Dial(ctx context.Context, addr string) (transport.Conn, error) {
	c, err := n.Network.Dial(ctx, addr)
	return n.wrap(c), err
}

func (n *faulty) Listen() (transport.Listener, error) {
	l, err := n.Network.Listen()
	return &faultyListener{l, n}, err
}

type faultyListener struct {
	transport.Listener
	n *faulty
}

func (l *faultyListener) Accept() (transport.Conn, error) {
	c, err := l.Listener.Accept()
	return l.n.wrap(c), err
}

func (n *faulty) wrap(c transport.Conn) transport.Conn {
	if c == nil {
		return nil
	}
	return &faultyConn{Conn: c, n: n, pushes: map[uint64]push{}}
}

type faultyConn struct {
	transport.Conn
	n *faulty

	mu     sync.Mutex
	pushes map[uint64]push // under way, by request
}

type push struct {
	step int64
	late bool // it went out, or came in, after the signal
}

// Send sends a frame, after the fault where this is its moment.
func (c *faultyConn) Send(f *wire.Frame) error {
	switch f.Kind {
	case wire.Push:
		c.note(f, c.n.strike(f.Step))
	case wire.PushAck:
		c.n.strike(c.answered(f))
	}
	return c.Conn.Send(f)
}

// Recv passes frames on.
func (c *faultyConn) Recv() (*wire.Frame, error) {
	f, err := c.Conn.Recv()
	if err != nil {
		return nil, err
	}
	switch f.Kind {
	case wire.Push:
		c.n.mu.Lock()
		late := c.n.over
		c.n.mu.Unlock()
		c.note(f, late)
	case wire.PushAck:
		c.answered(f)
	}
	return f, nil
}

func (c *faultyConn) note(f *wire.Frame, late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pushes[f.Request] = push{f.Step, late}
}

// answered takes a push off the list and returns its step; it logs a late one's
// outcome.
func (c *faultyConn) answered(f *wire.Frame) (step int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pushes[f.Request]
	delete(c.pushes, f.Request)
	if p.late {
		fmt.Fprintf(os.Stderr, "late push of step %d: outcome %d\n", p.step, f.Outcome)
	}
	return p.step
}

// strike sends the signal at its moment, and reports whether that is over.
func (n *faulty) strike(step int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over || step != n.fault.step {
		return n.over
	}
	if n.count++; n.count < n.fault.n {
		return false
	}
	for range 1000 {
		if _, err := checkpoint.Newest(checkpoint.OS{}, n.checkpoints); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, "fault: %s at step %d: %v\n", n.self, step, n.fault.signal)
	syscall.Kill(os.Getpid(), n.fault.signal)
	time.Sleep(50 * time.Millisecond) // the signal may be another thread's; nothing goes out before it
	n.over = true
	return true
}

// outcomes returns, from a member's log, the outcomes of the pushes that left or
// reached it after its fault: 0 accepted, 1 a duplicate, 2 of another generation.
func outcomes(log string) (list []int) {
	for line := range strings.Lines(log) {
		var step, outcome int
		if n, _ := fmt.Sscanf(line, "late push of step %d: outcome %d", &step, &outcome); n == 2 {
			list = append(list, outcome)
		}
	}
	return list
}
