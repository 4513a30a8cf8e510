// Package step measures whole training steps of a workload in one process.
//
// A step is what a job with one server and one worker computes, without network: the
// parameters are set in the executable, forward and backward run, and package optim
// updates the parameters from the gradients. Tables of which a batch reads few rows
// exchange these rows alone, as with servers.
//
// The batch is random and the same in all steps. Sequences are as long as the model
// allows (speech has a usual length), and no id is padding, so that all work counts.
// Words are as frequent as in texts (Zipf's law), which decides how many rows of a table
// a batch touches.
package step

import (
	"fmt"
	"runtime"

	"optimus/compute"
	"optimus/compute/cpu"
	"optimus/compute/optim"
	"optimus/models"
)

// Options say what to measure.
type Options struct {
	Workload string
	Size     string // "" or models.Tiny; Tiny has the model of the workload's generated data
	Batch    int    // examples; 0 stands for DefaultBatch
	Threads  int    // default 1
}

// Step is a workload that is ready to run.
type Step struct {
	Workload  models.Workload
	Program   *compute.Program
	Batch     int
	Optimizer optim.Config
	Memory    Memory

	exe    compute.Executable
	input  *compute.Batch
	blocks []block
	steps  int64
}

// DefaultBatch is the batch of a workload's step: a worker's share of it for the
// large models, else all of it.
func DefaultBatch(w models.Workload) int {
	share := map[string]int{"resnet-50": 8, "inception-bn": 8, "resnext-110": 32, "deepspeech2": 2}
	if n, ok := share[w.Name]; ok {
		return min(n, w.Batch)
	}
	return w.Batch
}

// New makes a workload ready; Close it in the end. The error says which workload, size or number is wrong.
func New(o Options) (*Step, error) {
	w, err := models.Lookup(o.Workload)
	if err == nil {
		w, err = w.At(o.Size)
	}
	if err != nil {
		return nil, err
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch(w)
	}
	if o.Threads == 0 {
		o.Threads = 1
	}
	p, err := program(w, o.Size)
	if err != nil {
		return nil, fmt.Errorf("step of %s: %w", w.Name, err)
	}
	before := heap()
	exe, err := cpu.Compile(p, o.Batch, cpu.Threads(o.Threads))
	if err != nil {
		return nil, fmt.Errorf("step of %s: %w", w.Name, err)
	}
	s := &Step{Workload: w, Program: p, Batch: o.Batch, Optimizer: w.Schedule(w.Examples, o.Batch), exe: exe, input: batch(p, o.Batch)}
	for i, param := range p.Params {
		s.blocks = append(s.blocks, newBlock(i, param, s.Optimizer.Slots()))
	}
	if err := s.Run(); err != nil { // the first step allocates
		s.Close()
		return nil, err
	}
	s.Memory = memory(p, o.Batch, s.Optimizer.Slots())
	s.Memory.Heap = heap() - before
	return s, nil
}

// program is the model for the whole original data set, and for other sizes the
// one for generated data, whose pictures and vocabulary are smaller.
func program(w models.Workload, size string) (*compute.Program, error) {
	if size == "" {
		return w.Full()
	}
	set, err := w.Generate(models.Options{Seed: 1, N: 64})
	if err != nil {
		return nil, err
	}
	return w.Program(set)
}

// Run makes one step.
func (s *Step) Run() error {
	s.steps++
	for i := range s.blocks {
		if err := s.blocks[i].set(s.exe, s.input); err != nil {
			return fmt.Errorf("step of %s: %w", s.Workload.Name, err)
		}
	}
	result, err := s.exe.Train(s.input, compute.Key{Seed: 1, Epoch: int(s.steps)}, compute.Hooks{})
	if err != nil {
		return fmt.Errorf("step of %s: %w", s.Workload.Name, err)
	}
	u := optim.Update{T: s.steps, LR: s.Optimizer.Rate(s.steps), Weight: result.Weight, Excess: s.excess(result.Weight)}
	for i := range s.blocks {
		if err := s.blocks[i].update(s.exe, s.Optimizer, u); err != nil {
			return fmt.Errorf("step of %s: %w", s.Workload.Name, err)
		}
	}
	return nil
}

// excess is what the norm of the gradient asks for (optim.Config.ClipNorm).
func (s *Step) excess(weight int64) float64 {
	if s.Optimizer.ClipNorm == 0 {
		return 0
	}
	var sum optim.Squares
	for i := range s.blocks {
		g := s.exe.Grad(i)
		sum.Add(g.Dense, weight, s.Optimizer.ClipNorm)
		sum.Add(g.Values, weight, s.Optimizer.ClipNorm) // of a table
	}
	return sum.Excess()
}

// Close ends the executable's threads.
func (s *Step) Close() { s.exe.Close() }

// Allocations returns how many objects a step allocates, on average over n steps.
func (s *Step) Allocations(n int) (float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		if err := s.Run(); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n), nil
}
