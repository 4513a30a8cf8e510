package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
)

func checkpointCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "checkpoint",
		Short: "List and verify the saved states of jobs",
		Long: `List and verify the saved states of jobs.

A checkpoint is found by the name of its job or by a folder: that of one
checkpoint, of several, or of a job.`,
	}
	c.AddCommand(checkpointListCommand(a), checkpointVerifyCommand(a), checkpointNowCommand(a))
	return c
}

// The states of a checkpoint: the first two are told from its manifest, the last
// from all its bytes as well.
const (
	saveComplete   = "complete"
	saveIncomplete = "incomplete" // the save has not finished, or never will
	saveDamaged    = "damaged"
)

// savedState is the JSON form of one checkpoint. Epoch, Shards and Bytes are in
// its manifest: 0 unless it is complete.
type savedState struct {
	Job      string    `json:"job,omitempty"` // empty: its folder is not a job's
	Sequence int64     `json:"sequence"`
	Step     int64     `json:"step"`
	Epoch    int       `json:"epoch"`
	Shards   int       `json:"shards"`
	Bytes    int64     `json:"bytes"`
	State    string    `json:"state"`
	Created  time.Time `json:"created"` // of the folder, where there is no manifest
	Dir      string    `json:"dir"`
	*damage
}

// damage says what is wrong with a checkpoint and where.
type damage struct {
	Fault  checkpoint.Fault `json:"fault,omitempty"`
	File   string           `json:"file,omitempty"`
	Tensor string           `json:"tensor,omitempty"`
	Error  string           `json:"error"`
}

func newDamage(err error) *damage {
	d := &damage{Error: err.Error()}
	if e, ok := errors.AsType[*checkpoint.Error](err); ok {
		d.Fault, d.File, d.Tensor = e.Fault, e.Path, e.Tensor
	}
	return d
}

// describe says what the manifest tells of a checkpoint.
func describe(f savedInfo) savedState {
	s := savedState{Job: f.job, Sequence: f.Sequence, Step: f.Step, State: saveComplete, Dir: f.Dir}
	switch m := f.Manifest; {
	case !f.Complete:
		s.State = saveIncomplete
	case f.Err != nil:
		s.State, s.damage = saveDamaged, newDamage(f.Err)
	default:
		s.Epoch, s.Shards, s.Bytes = m.Epoch, len(m.Shards), m.Bytes()
		s.Created, _ = time.Parse(time.RFC3339, m.Created) // optional in a manifest
	}
	if info, err := os.Stat(f.Dir); s.Created.IsZero() && err == nil {
		s.Created = info.ModTime().UTC().Truncate(time.Second)
	}
	return s
}

// savedTable has one row per checkpoint. What is wrong with it comes last, under
// the given name.
func savedTable(list []savedState, wrong string) table {
	t := table{columns: []string{"JOB", "SEQ", "STEP", "EPOCH", "SHARDS", "BYTES", "STATE", "AGE", "+DIR", wrong}, name: 8}
	for _, s := range list {
		epoch, shards, size, what := "-", "-", "-", "-"
		if s.Shards > 0 {
			epoch, shards, size = fmt.Sprint(s.Epoch), fmt.Sprint(s.Shards), humanBytes(s.Bytes)
		}
		if s.damage != nil {
			what = s.Error
		}
		t.rows = append(t.rows, []string{cmp.Or(s.Job, "-"), fmt.Sprint(s.Sequence), fmt.Sprint(s.Step), epoch, shards, size,
			s.State, humanAge(time.Since(s.Created)), s.Dir, what})
	}
	return t
}

func checkpointListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "ls [JOB|DIR]",
		Short: "List checkpoints, the newest first",
		Long: `List the checkpoints of a job, or of all jobs, the newest of each first.

The state is told from the manifest alone: verify checks the data as well.`,
		Example: "  optimus checkpoint ls\n  optimus checkpoint ls cnn-rand-1 -o wide",
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := findSaved("checkpoint ls", args)
			if err != nil && len(found) == 0 {
				return err
			}
			list := make([]savedState, len(found))
			for i, f := range found {
				list[i] = describe(f)
			}
			return errors.Join(a.print(list, savedTable(list, "+ERROR")), err)
		},
	}
}

func checkpointVerifyCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify JOB|DIR",
		Short: "Check every byte of checkpoints",
		Long: `Check every byte of a checkpoint, or of all that a job has.

The exit status is 1 if one is damaged; the report names the file and the tensor.
What a killed save left is reported as incomplete and is no damage.`,
		Example: "  optimus checkpoint verify cnn-rand-1",
		RunE:    func(c *cobra.Command, args []string) error { return a.verify(c.Context(), args) },
	}
}

func (a *app) verify(ctx context.Context, args []string) error {
	const op = "checkpoint verify"
	found, err := findSaved(op, args)
	if err != nil {
		return err
	}
	list := make([]savedState, len(found))
	complete := 0
	var wrong []error
	for i, f := range found {
		if err := ctx.Err(); err != nil {
			return failure.E(op, args[0], failure.Canceled, err, "")
		}
		list[i] = describe(f)
		if !f.Complete {
			continue
		}
		complete++
		if err := checkpoint.Verify(checkpoint.OS{}, f.Dir); err != nil {
			list[i].State, list[i].damage = saveDamaged, newDamage(err)
			wrong = append(wrong, err)
		}
	}
	if complete == 0 {
		return failure.E(op, args[0], failure.NotFound, errors.New("it has no complete checkpoint"), "see `optimus checkpoint ls`")
	}
	if err := a.print(list, savedTable(list, "ERROR")); err != nil || len(wrong) == 0 {
		return err
	}
	return failure.E(op, args[0], failure.Corrupt, fmt.Errorf("%d of %d damaged: %w", len(wrong), complete, wrong[0]), "")
}
