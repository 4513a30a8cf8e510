package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

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
// the job last had.
func resumeJob(c *cobra.Command, f *trainFlags) error {
	dir, err := train.FindCheckpoint("", f.job.Resume)
	if err != nil {
		return err
	}
	r, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		return err
	}
	stored := r.Manifest().Spec
	r.Close()
	given := map[string]string{}
	c.Flags().Visit(func(fl *pflag.Flag) { given[fl.Name] = fl.Value.String() })
	resume := f.job.Resume
	base := spec.Default()
	if err := json.Unmarshal(stored, &base); err != nil {
		return failure.E("resume", dir, failure.Corrupt, err, "resume from another checkpoint")
	}
	name := base.Name
	f.job = base
	if d, err := rundir.Open("", resume); err == nil {
		f.job.Name = d.Name
		if err := lastCounts(d, &f.job); err != nil {
			return err
		}
	} else {
		f.job.Name = name
	}
	for flag, value := range given {
		if err := c.Flags().Set(flag, value); err != nil {
			return err
		}
	}
	f.job.Resume = resume
	return nil
}

// lastCounts gives the job the counts that its journal last acknowledged.
func lastCounts(d *rundir.Dir, j *spec.TrainingJob) error {
	h, err := readHistory(d)
	if err != nil {
		return err
	}
	if past := h.past; past.Servers > 0 {
		j.Servers.Count, j.Workers.Count = past.Servers, past.Workers
	}
	return nil
}

// lastRuns is what a job's journal says.
type lastRuns struct {
	past   elastic.Past
	reason string // of the last state
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
	for i, line := range lines {
		if err := json.Unmarshal(line, &entries[i]); err != nil {
			return h, failure.E("read journal", d.Journal(), failure.Corrupt, fmt.Errorf("entry %d: %w", i+1, err), "give --servers and --workers, and another --job")
		}
		if entries[i].Kind == "state" {
			h.reason = entries[i].Reason
		}
	}
	h.past = elastic.Replay(entries)
	return h, nil
}
