// Package launch starts the tasks of a job: here, as child processes under the
// job's supervisor. A child never outlives its supervisor: the kernel kills it
// when the thread that started it ends, and it ends by itself when its control
// link does.
package launch

import (
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
	PID int
	cmd *exec.Cmd
}

// Start runs a program with its output appended to the file log, and calls
// exited once it has ended, with a one-line cause.
func (p *Processes) Start(path string, args, env []string, log string, exited func(cause string)) (*Child, error) {
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
	p.wg.Go(func() {
		exited(cause(cmd.Wait(), log))
	})
	return &Child{PID: cmd.Process.Pid, cmd: cmd}, nil
}

// cause says in one line how a process ended.
func cause(err error, log string) string {
	if err == nil {
		return "ended"
	}
	return fmt.Sprintf("%v; its log is %s", err, log)
}

// Terminate asks the child to end; Kill ends it.
func (c *Child) Terminate() { c.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends the child at once.
func (c *Child) Kill() { c.cmd.Process.Kill() }

// Close waits for all children, which must have been told to end, and frees the
// parent thread.
func (p *Processes) Close() {
	p.wg.Wait()
	close(p.requests)
}
