package trace

import (
	"cmp"
	"io"
	"slices"
	"time"
)

// PhillyJob is a job of Microsoft's Philly trace, as digested for the Pollux simulator.
type PhillyJob struct {
	Submit   float64 // seconds since the first job
	Duration float64 // seconds of run time
	GPUs     int
	Cluster  string // virtual cluster
}

// ReadPhilly reads a CSV file with the columns timestamp (2006-01-02 15:04:05), duration (s), num_gpus and cluster. The
// jobs are returned by submission, and those of the same second as listed. Errors name the file as given here, the line
// and the field.
func ReadPhilly(file string, r io.Reader) ([]PhillyJob, error) {
	t := newRows(file, r, "timestamp", "duration", "num_gpus", "cluster")
	var jobs []PhillyJob
	var first time.Time
	for t.next() {
		j := PhillyJob{Duration: t.number("duration", 0), GPUs: t.count("num_gpus", 1), Cluster: t.text("cluster")}
		stamp := t.text("timestamp")
		if t.err != nil {
			break
		}
		at, err := time.Parse(time.DateTime, stamp)
		if err != nil {
			t.fail("timestamp", "%q is not a time such as %q", stamp, time.DateTime)
			break
		}
		if first.IsZero() {
			first = at
		}
		j.Submit = at.Sub(first).Seconds()
		jobs = append(jobs, j)
	}
	if t.err != nil {
		return nil, t.err
	}
	slices.SortStableFunc(jobs, func(a, b PhillyJob) int { return cmp.Compare(a.Submit, b.Submit) })
	for i := len(jobs) - 1; i >= 0; i-- { // the first line need not be the first job
		jobs[i].Submit -= jobs[0].Submit
	}
	return jobs, nil
}
