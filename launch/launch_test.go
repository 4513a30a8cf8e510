package launch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/launch"
)

// The test binary is its own child program: these variables say what it does as
// a child, and where it tells that it does.
const (
	roleVar   = "LAUNCH_TEST_ROLE"
	socketVar = "LAUNCH_TEST_SOCKET"
)

// quick lets a child with the race detector end without a second of sleep.
const quick = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(child(role))
	}
	goleak.VerifyTestMain(m)
}

// child is the main of a child. The roles that stay also end with the test.
func child(role string) int {
	switch role {
	case "brief":
		fmt.Println("out", strings.Join(os.Args[1:], " "))
		fmt.Fprintln(os.Stderr, "boom")
		return 3
	case "waits":
	case "polite":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			<-signals
			fmt.Println("goodbye")
			os.Exit(0)
		}()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "supervisor":
		p := launch.NewProcesses()
		for range 2 {
			if _, err := p.Start(self(), nil, []string{roleVar + "=waits"}, os.DevNull, func(string) {}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
	default:
		fmt.Fprintln(os.Stderr, "no such role:", role)
		return 2
	}
	conn, err := net.Dial("unix", os.Getenv(socketVar))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(conn, role)
	io.Copy(io.Discard, conn) // until the test is over
	return 0
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience bounds every wait of these tests; children are gone long before.
const patience = 5 * time.Second

// nest is a launcher, and the socket on which its children report.
type nest struct {
	*launch.Processes
	t      *testing.T
	dir    string
	socket *net.UnixListener
}

func newNest(t *testing.T) *nest {
	t.Helper()
	dir, err := os.MkdirTemp("", "launch") // shorter than the test's own: a socket's path has a limit
	check(t, err)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s")})
	check(t, err)
	n := &nest{Processes: launch.NewProcesses(), t: t, dir: dir, socket: l}
	t.Cleanup(func() {
		l.Close()
		n.Close()
		os.RemoveAll(dir)
	})
	return n
}

func (n *nest) log() string { return filepath.Join(n.dir, "log") }

func (n *nest) written() string {
	b, err := os.ReadFile(n.log())
	check(n.t, err)
	return string(b)
}

// begin starts a child in a role and returns it with its exit's cause to come.
func (n *nest) begin(role string, args ...string) (*launch.Child, <-chan string) {
	n.t.Helper()
	causes := make(chan string, 1)
	c, err := n.Start(self(), args, []string{quick, roleVar + "=" + role, socketVar + "=" + n.socket.Addr().String()}, n.log(),
		func(cause string) { causes <- cause })
	check(n.t, err)
	n.t.Cleanup(c.Kill)
	return c, causes
}

// meet accepts the connection of a child that has come up and returns its role
// and a channel that is closed once it is dead: it never hangs up by itself.
func (n *nest) meet() (role string, dead <-chan struct{}) {
	n.t.Helper()
	n.socket.SetDeadline(time.Now().Add(patience))
	conn, err := n.socket.Accept()
	check(n.t, err)
	n.t.Cleanup(func() { conn.Close() })
	r := bufio.NewReader(conn)
	role, err = r.ReadString('\n')
	check(n.t, err)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		io.Copy(io.Discard, r)
	}()
	return strings.TrimSpace(role), closed
}

func receive[T any](t *testing.T, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
	return v
}

// gone fails if a process exists still, if only as a zombie.
func gone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

// A child gets its arguments, its output is appended to its log, and its end is
// told with the status and the place of the log.
func TestOutputAndStatus(t *testing.T) {
	n := newNest(t)
	for range 2 {
		c, causes := n.begin("brief", "a", "b c")
		if got, want := receive(t, causes, "the exit"), "exit status 3; its log is "+n.log(); got != want {
			t.Errorf("cause %q, want %q", got, want)
		}
		gone(t, c.PID)
	}
	if got, want := n.written(), strings.Repeat("out a b c\nboom\n", 2); got != want {
		t.Errorf("log %q, want %q", got, want)
	}
}

// A child is asked to end, and killed if it does not in time.
func TestStop(t *testing.T) {
	for _, test := range []struct {
		role  string
		grace time.Duration
		cause string
		log   string
	}{
		{"polite", patience, "ended", "goodbye\n"},
		{"waits", patience, "signal: terminated", ""},
		{"stubborn", 20 * time.Millisecond, "signal: killed", ""},
	} {
		t.Run(test.role, func(t *testing.T) {
			n := newNest(t)
			c, causes := n.begin(test.role)
			n.meet()
			ctx, cancel := context.WithTimeout(t.Context(), test.grace)
			defer cancel()
			err := c.Stop(ctx)
			if killed := test.role == "stubborn"; killed != (err != nil) || killed && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Stop: %v", err)
			}
			if got := receive(t, causes, "the exit"); !strings.HasPrefix(got, test.cause) {
				t.Errorf("cause %q, want %q", got, test.cause)
			}
			gone(t, c.PID)
			if got := n.written(); got != test.log {
				t.Errorf("log %q, want %q", got, test.log)
			}
			check(t, c.Stop(t.Context())) // of one that is gone
			c.Kill()
		})
	}
}

// Close waits for all children, and afterwards nothing is started.
func TestClose(t *testing.T) {
	n := newNest(t)
	var children []*launch.Child
	var causes []<-chan string
	for range 3 {
		c, cause := n.begin("waits")
		n.meet()
		children, causes = append(children, c), append(causes, cause)
	}
	closed := make(chan struct{})
	go func() {
		n.Close()
		close(closed)
	}()
	for _, c := range children {
		select {
		case <-closed:
			t.Fatal("Close returned before its children had ended")
		default:
		}
		c.Kill()
	}
	receive(t, closed, "Close")
	for i, c := range children {
		gone(t, c.PID)
		if got := receive(t, causes[i], "the exit"); !strings.HasPrefix(got, "signal: killed") {
			t.Errorf("cause %q", got)
		}
	}
	if _, err := n.Start(self(), nil, nil, n.log(), func(string) { t.Error("exited") }); err == nil || !strings.Contains(err.Error(), "the launcher is closed") {
		t.Errorf("Start after Close: %v", err)
	}
	n.Close() // again
}

// Children are started by many goroutines at once.
func TestStartTogether(t *testing.T) {
	n := newNest(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			causes := make(chan string, 1)
			if _, err := n.Start(self(), nil, []string{quick, roleVar + "=brief"}, n.log(), func(cause string) { causes <- cause }); err != nil {
				t.Error(err)
			} else if got := <-causes; !strings.HasPrefix(got, "exit status 3") {
				t.Errorf("cause %q", got)
			}
		})
	}
	wg.Wait()
	if got := strings.Count(n.written(), "boom\n"); got != 8 {
		t.Errorf("%d children wrote", got)
	}
}

// What cannot be started is an error that names it, and no exit is told.
func TestStartErrors(t *testing.T) {
	n := newNest(t)
	exited := func(cause string) { t.Errorf("exited: %s", cause) }
	missing := filepath.Join(n.dir, "missing")
	if _, err := n.Start(missing, nil, nil, n.log(), exited); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "start "+missing) {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, err := n.Start(self(), nil, nil, filepath.Join(missing, "log"), exited); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "start "+self()) {
		t.Errorf("a log that cannot be written: %v", err)
	}
}

// A signal of the terminal goes to the supervisor's group, not to the children.
func TestOwnGroup(t *testing.T) {
	n := newNest(t)
	c, _ := n.begin("waits")
	n.meet()
	if group, err := syscall.Getpgid(c.PID); err != nil || group != c.PID {
		t.Errorf("group %d of process %d: %v", group, c.PID, err)
	}
}
