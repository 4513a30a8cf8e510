package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/internal/rundir"
	"optimus/spec"
	"optimus/train"
)

// resumeJob takes the settings of the checkpoint to resume as the base; flags
// that the user gave override them. Counts that were not given are those that
// the job last had. Every byte of the checkpoint has been checked; damaged ones
// that were passed over for it are told.
func resumeJob(c *cobra.Command, f *trainFlags) error {
	where := f.job.Resume
	dir, damaged, err := train.FindCheckpoint("", where)
	if k := failure.KindOf(err); k == failure.NotFound || k == failure.InvalidArgument {
		if !exists(where) {
			return unknown("resume", "no job and no folder", where)
		}
		do := "start it anew, without --resume"
		if d, err := rundir.Open("", where); err == nil {
			if _, running := d.Running(); running {
				do = "it is running: `optimus checkpoint now " + d.Name + "` makes one"
			}
		}
		return failure.E("resume", where, k, errors.New("it has no complete checkpoint"), do)
	}
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return failure.E("find", dir, "", err, "give an absolute path")
	}
	for _, d := range damaged {
		fmt.Fprintf(c.ErrOrStderr(), "passed over the checkpoint at step %d: %v\n", d.Step, d.Err)
	}
	r, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		return err
	}
	stored := r.Manifest().Spec
	if len(damaged) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "going on from the newest whole one, at step %d\n", r.Manifest().Step)
	}
	r.Close()
	given := map[string]string{}
	c.Flags().Visit(func(fl *pflag.Flag) { given[fl.Name] = fl.Value.String() })
	base := spec.Default()
	if err := json.Unmarshal(stored, &base); err != nil {
		return failure.E("resume", dir, failure.Corrupt, err, "resume from another checkpoint")
	}
	if given["epochs"] != "" || given["steps"] != "" {
		base.Epochs, base.Steps = 0, 0 // the new length replaces the old one, in whichever unit that was
	}
	f.job, f.maxTime = base, time.Duration(base.MaxTime)
	f.job.Name = "" // a folder may be a copy: it does not name the job to go on with
	d, err := rundir.Open("", where)
	if err == nil {
		f.job.Name = d.Name
		if err := lastCounts(d, &f.job); err != nil {
			return err
		}
	}
	same := f.job.Name
	for flag, value := range given {
		if err := c.Flags().Set(flag, value); err != nil {
			return err
		}
	}
	if _, placed := given["checkpoint-dir"]; !placed && (same == "" || f.job.Name != same) {
		f.job.CheckpointDir = "" // the other job's
	}
	f.job.Resume = dir
	return nil
}

// exists reports whether a job or a folder has the name.
func exists(where string) bool {
	if _, err := rundir.Open("", where); err == nil {
		return true
	}
	info, err := os.Stat(where)
	return err == nil && info.IsDir()
}

// lastCounts gives the job the counts that its journal last acknowledged.
func lastCounts(d *rundir.Dir, j *spec.TrainingJob) error {
	h, err := readHistory(d)
	if err != nil {
		return err
	}
	if n := h.past.Servers; n > 0 && j.Servers.Allows(n) {
		j.Servers.Count = n
	}
	if n := h.past.Workers; n > 0 && j.Workers.Allows(n) {
		j.Workers.Count = n
	}
	return nil
}

// lastRuns is what a job's journal says.
type lastRuns struct {
	past     elastic.Past
	state    spec.State           // the last run's end; empty if it was killed
	reason   string               // of that state, or of the stop that was asked for
	rescales []spec.RescaleReport // when, from what, to what; no more is known here
}

// readHistory reads a job's journal; one that was never begun is empty.
func readHistory(d *rundir.Dir) (h lastRuns, err error) {
	lines, err := rundir.ReadJournal(d.Journal())
	if errors.Is(err, os.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	entries := make([]elastic.Entry, len(lines))
	var had [2]int // servers, workers
	began := false // the generation that comes is the first of a run, or one from a checkpoint
	for i, line := range lines {
		if err := json.Unmarshal(line, &entries[i]); err != nil {
			return h, failure.E("read journal", d.Journal(), failure.Corrupt, fmt.Errorf("entry %d: %w", i+1, err), "give --servers and --workers, and another --job")
		}
		switch e := entries[i]; e.Kind {
		case "state":
			h.state, h.reason = spec.State(e.State), e.Reason
		case "stop":
			h.reason = e.Reason
		case "prepare":
			if began = e.Source == elastic.FromInit || e.Source == elastic.FromCheckpoint; began {
				h.state, h.reason = "", ""
			}
		case "commit":
			has := [2]int{e.Servers, e.Workers}
			if had != has && !began {
				h.rescales = append(h.rescales, spec.RescaleReport{Step: int(e.Step), From: had, To: has, Generation: uint64(e.Gen)})
			}
			had = has
		}
	}
	h.past = elastic.Replay(entries)
	return h, nil
}
