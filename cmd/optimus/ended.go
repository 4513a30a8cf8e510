package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/internal/rundir"
	"optimus/spec"
	"optimus/telemetry"
	"optimus/train"
)

// asked is what a job's folder says about what was asked for. A job that a newer
// program wrote may say more.
type asked struct {
	Job    spec.TrainingJob `json:"job"`
	Steps  int64            `json:"steps"`
	Epochs int              `json:"epochs"`
	Plan   struct {
		Examples int `json:"examples"`
		Batch    int `json:"batch"`
	} `json:"plan"`
	began time.Time // the last run
}

// readAsked reads the specification of a job; what is not known is zero.
func readAsked(name string) asked {
	d, err := rundir.Open("", name)
	if err != nil {
		return asked{}
	}
	return readAskedIn(d)
}

// readAskedIn is readAsked for a job's folder.
func readAskedIn(d *rundir.Dir) asked {
	var a asked
	if text, err := os.ReadFile(d.Spec()); err == nil {
		_ = json.Unmarshal(text, &a) // a damaged one leaves gaps in a listing, no more
	}
	if info, err := os.Stat(d.Spec()); err == nil {
		a.began = info.ModTime()
	}
	return a
}

// endedStatus is a job that does not run, as its files tell.
func endedStatus(d *rundir.Dir) (spec.Status, error) {
	unknown := spec.Number(math.NaN())
	a := readAsked(d.Name)
	s := spec.Status{Job: d.Name, Workload: a.Job.Workload, State: spec.Failed, Steps: int(min(a.Steps, 1<<31)), Epochs: a.Epochs,
		Servers: a.Job.Servers.Count, Workers: a.Job.Workers.Count, Loss: unknown, ExamplesPerS: unknown,
		Members: []spec.Member{}, Rescales: []spec.RescaleReport{}, Updated: a.began}
	if a.Job.Mode != spec.BSP && a.Job.Steps == 0 {
		s.Steps = 0 // bounded by epochs alone
	}
	h, err := readHistory(d)
	if err != nil {
		return s, err
	}
	if h.past.Servers > 0 {
		s.Servers, s.Workers, s.Generation = h.past.Servers, h.past.Workers, uint64(h.past.Generation)
	}
	s.Rescales = append(s.Rescales, h.rescales...)
	switch {
	case h.state != "":
		s.State, s.Reason = h.state, h.reason
	case h.reason != "":
		s.State, s.Reason = spec.Stopped, h.reason+", and ended before its checkpoint was written"
	case h.past.Generation == 0:
		s.Reason = "it never began"
	default:
		s.Reason = "its process died"
	}
	if err := readTelemetry(d.Telemetry(), a.Plan.Examples, &s); err != nil {
		return s, err
	}
	if root, err := train.CheckpointRoot(d); err == nil {
		if newest, err := checkpoint.Newest(checkpoint.OS{}, root); err == nil {
			s.LastCheckpoint = newest.Dir
		}
	}
	return s, nil
}

// readTelemetry adds what the last records of a job tell. Their file may be huge,
// so that it is read from its end; of what is older the journal has told.
func readTelemetry(path string, examples int, s *spec.Status) error {
	lines, err := lastLines(path, 1<<20)
	if err != nil {
		return err
	}
	progress := func(step, done int64, loss telemetry.Float, at time.Time) {
		s.Step, s.Loss, s.Updated = int(step), spec.Number(loss), at
		if examples > 0 {
			s.Epoch = float64(done) / float64(examples)
		}
	}
	for _, line := range lines {
		r, err := telemetry.Decode(line)
		if err != nil {
			continue // torn by the end of the process
		}
		switch r := r.(type) {
		case telemetry.Step:
			progress(r.Step, r.Examples, r.Loss, r.Time)
		case telemetry.End:
			progress(r.Step, r.Examples, r.Loss, r.Time)
		case telemetry.Evaluation:
			if v, ok := r.Metrics[r.Metric]; ok {
				s.Metric = &spec.Metric{Name: r.Metric, Value: spec.Number(v), Loss: spec.Number(r.Loss)}
			}
		case telemetry.Transition:
			for i := range s.Rescales {
				if t := &s.Rescales[i]; t.Generation == uint64(r.Generation) {
					t.PauseMS, t.ElementsMoved, t.BytesMoved, t.StateDigest = r.PauseMS, r.Elements, r.Bytes, r.Digest
				}
			}
		}
	}
	return nil
}

// lastLines returns the whole lines among the last limit bytes of a file. A file
// that does not exist has none.
func lastLines(path string, limit int64) ([][]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.E("read", path, "", err, "check its permissions")
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, failure.E("read", path, "", err, "")
	}
	from := max(0, size-limit)
	text := make([]byte, size-from)
	if n, err := f.ReadAt(text, from); err != nil && !errors.Is(err, io.EOF) {
		return nil, failure.E("read", path, "", err, "")
	} else {
		text = text[:n]
	}
	lines := bytes.Split(text, []byte{'\n'})
	if from > 0 {
		lines = lines[1:] // begins before the limit
	}
	return lines, nil
}

// ended is the verb for a final state.
func ended(s spec.State) string {
	if s == spec.Stopped {
		return "was stopped"
	}
	return string(s) // finished, failed
}
