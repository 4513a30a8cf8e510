// Package launch starts the tasks of a job: here, as child processes under the
// job's supervisor. A child never outlives its supervisor: the kernel kills it
// when the thread that started it ends, and it ends by itself when its control
// link does.
package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Processes starts child processes and waits for them. The zero value is not
// usable; see NewProcesses.
type Processes struct {
	requests chan request
	wg       sync.WaitGroup
	mu       sync.Mutex // held while a child is started
	closed   bool
}

type request struct {
	cmd  *exec.Cmd
	done chan error
}

// NewProcesses starts the thread that is the parent of all children.
func NewProcesses() *Processes {
	p := &Processes{requests: make(chan request)}
	go p.parent()
	return p
}

// parent starts children on one thread that lives as long as p: the kernel
// sends the parent-death signal when the starting thread ends, not the process.
func (p *Processes) parent() {
	runtime.LockOSThread()
	for r := range p.requests {
		r.done <- r.cmd.Start()
	}
}

// Child is a process that was started.
type Child struct {
	PID   int
	cmd   *exec.Cmd
	ended chan struct{}
}

var errClosed = errors.New("the launcher is closed")

// Start runs a program with its output appended to the file log, and calls
// exited once it has ended, with a one-line cause: maybe before Start returns.
func (p *Processes) Start(path string, args, env []string, log string, exited func(cause string)) (*Child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("start %s: %w", path, errClosed)
	}
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	defer out.Close()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = childAttributes()
	r := request{cmd, make(chan error, 1)}
	p.requests <- r
	if err := <-r.done; err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	c := &Child{PID: cmd.Process.Pid, cmd: cmd, ended: make(chan struct{})}
	p.wg.Go(func() {
		err := cmd.Wait()
		close(c.ended)
		exited(cause(err, log))
	})
	return c, nil
}

// cause says in one line how a process ended.
func cause(err error, log string) string {
	if err == nil {
		return "ended"
	}
	return fmt.Sprintf("%v; its log is %s", err, log)
}

// Stop asks the child to end (SIGTERM) and waits for it. If it has not ended when
// ctx is done, it is killed and the error says so.
func (c *Child) Stop(ctx context.Context) error {
	c.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
	}
	c.Kill()
	return fmt.Errorf("stop process %d: it did not end on SIGTERM and was killed: %w", c.PID, context.Cause(ctx))
}

// Kill ends the child at once.
func (c *Child) Kill() { c.cmd.Process.Kill() }

// Close waits for all children, which must have been told to end, and frees the
// parent thread. Nothing can be started from then on.
func (p *Processes) Close() {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	p.wg.Wait()
	if !again {
		close(p.requests)
	}
}
