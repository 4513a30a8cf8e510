// Package pytorch runs PyTorch's training step of a workload in a child process, for
// comparison with ours.
//
// The child builds the model from nets.py, which golden references come from as
// well, and makes steps when it is told to; between its turns it sleeps. So the two
// sides can take turns on one machine without disturbing each other. Nothing of the
// project but this comparison needs Python.
package pytorch

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"optimus/benchmarks/golden"
	"optimus/benchmarks/step"
	"optimus/compute/optim"
)

//go:embed train.py
var script []byte

// Config is what the child is to train.
type Config struct {
	Model     string       `json:"model"` // a workload's name
	Batch     int          `json:"batch"`
	Threads   int          `json:"threads"`
	Inputs    []step.Input `json:"inputs"`
	Optimizer optim.Config `json:"optimizer"`
}

// Setup is what the child says before its first turn.
type Setup struct {
	Torch      string             `json:"torch"` // versions
	Python     string             `json:"python"`
	OneDNN     string             `json:"onednn"`
	BLAS       string             `json:"blas"`
	Capability string             `json:"capability"` // the instructions of PyTorch's own kernels
	Variant    string             `json:"variant"`    // the one that runs: plain, channels_last, sparse
	Trials     map[string]float64 `json:"trials"`     // seconds of a step of each variant, of the processor with one thread
	Parameters int                `json:"parameters"`
	Missing    bool               `json:"missing,omitempty"` // the script does not have the model
}

// String names the versions.
func (s Setup) String() string {
	text := "PyTorch " + s.Torch
	for _, part := range []struct{ before, what string }{{"oneDNN ", s.OneDNN}, {"", s.BLAS}, {"own kernels ", s.Capability}} {
		if part.what != "" {
			text += ", " + part.before + part.what
		}
	}
	return text
}

// ErrNoModel is wrapped by Start's error for a workload that the script does not have.
var ErrNoModel = errors.New("train.py does not have the model")

// patience bounds the start and each turn: some hundred times of what they need.
const patience = 10 * time.Minute

// Trainer is a child process. One goroutine uses it at a time.
type Trainer struct {
	Setup Setup

	cmd     *exec.Cmd
	folder  string // of the scripts
	in      io.WriteCloser
	out     *bufio.Scanner
	errors  *bytes.Buffer
	end     context.CancelFunc
	expired context.Context
}

// Start starts a child with an interpreter from Find and waits until it is ready. It
// ends with ctx, or by Close.
func Start(ctx context.Context, interpreter string, c Config) (*Trainer, error) {
	folder, err := os.MkdirTemp("", "optimus-pytorch-")
	if err != nil {
		return nil, fmt.Errorf("start PyTorch: %w", err)
	}
	t := &Trainer{folder: folder, errors: new(bytes.Buffer)}
	t.expired, t.end = context.WithCancel(ctx)
	if err := t.start(interpreter, c); err != nil {
		return nil, errors.Join(fmt.Errorf("start PyTorch for %s: %w", c.Model, err), t.Close())
	}
	return t, nil
}

func (t *Trainer) start(interpreter string, c Config) error {
	for name, text := range map[string][]byte{"train.py": script, "nets.py": golden.Nets} {
		if err := os.WriteFile(filepath.Join(t.folder, name), text, 0o600); err != nil {
			return err
		}
	}
	t.cmd = exec.CommandContext(t.expired, interpreter, filepath.Join(t.folder, "train.py"))
	t.cmd.Stderr = t.errors
	t.cmd.WaitDelay = 5 * time.Second
	t.cmd.Env = os.Environ()
	for _, name := range []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} {
		t.cmd.Env = append(t.cmd.Env, fmt.Sprintf("%s=%d", name, c.Threads))
	}
	var err error
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	t.out = bufio.NewScanner(out)
	if err := t.cmd.Start(); err != nil {
		return err
	}
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := t.ask(string(config), &t.Setup); err != nil {
		return err
	}
	if t.Setup.Missing {
		return ErrNoModel
	}
	return nil
}

// Turn makes n steps. The first ones were made by Start.
func (t *Trainer) Turn(n int) (step.Turn, error) {
	var answer struct{ CPU, Wall float64 }
	if err := t.ask(fmt.Sprint(n), &answer); err != nil {
		return step.Turn{}, fmt.Errorf("%d steps of PyTorch: %w", n, err)
	}
	if answer.CPU <= 0 || answer.Wall <= 0 {
		return step.Turn{}, fmt.Errorf("%d steps of PyTorch took %g s of the processor and %g s; both must be positive", n, answer.CPU, answer.Wall)
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return step.Turn{Steps: n, CPU: seconds(answer.CPU), Wall: seconds(answer.Wall)}, nil
}

// ask sends a line and decodes the line that comes back.
func (t *Trainer) ask(line string, answer any) error {
	late := time.AfterFunc(patience, t.end)
	defer late.Stop()
	if _, err := io.WriteString(t.in, line+"\n"); err != nil {
		return t.gone(err)
	}
	if !t.out.Scan() {
		return t.gone(t.out.Err())
	}
	if err := json.Unmarshal(t.out.Bytes(), answer); err != nil {
		return fmt.Errorf("its answer %q: %w", t.out.Text(), err)
	}
	return nil
}

// gone explains that the child has ended: by ctx, by itself, or after patience.
func (t *Trainer) gone(cause error) error {
	if err := context.Cause(t.expired); err != nil {
		return fmt.Errorf("the Python process was ended, or did not answer within %v: %w", patience, err)
	}
	t.end()
	_ = t.cmd.Wait() // its last words say more than its status
	if words := strings.Split(strings.TrimSpace(t.errors.String()), "\n"); words[len(words)-1] != "" {
		return fmt.Errorf("the Python process ended: %s", words[len(words)-1])
	}
	return fmt.Errorf("the Python process ended without a word: %w", errors.Join(cause, io.ErrUnexpectedEOF))
}

// Close ends the child and removes its files.
func (t *Trainer) Close() error {
	if t.cmd != nil && t.cmd.Process != nil {
		t.in.Close()
		t.end()
		_ = t.cmd.Wait() // it was killed
	}
	t.end()
	return os.RemoveAll(t.folder)
}
