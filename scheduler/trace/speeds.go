package trace

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"optimus/scheduler/estimate"
)

// SpeedTable is the measured speeds of one model in one mode with parameter servers.
type SpeedTable struct {
	Model  string
	Mode   string // "dist_sync" or "dist_async"
	Batch  int    // M, examples per step of a synchronous job
	Probes []estimate.Probe
	Lines  []int // of each probe in the file
}

// RejectedSpeed is a measurement that failed.
type RejectedSpeed struct {
	Line             int
	Model, Mode      string
	Servers, Workers int
	Problem          string
}

// ReadSpeeds reads a CSV file with the columns model, mode, global_batch, ps, workers, samples_per_s (examples/s of all
// workers) and, where it is there and not empty, worker_samples_per_s (of each, separated by semicolons). The speed of a probe is
// samples_per_s ÷ global_batch, in steps/s. A measurement without a positive, finite speed of the job and of each worker
// has failed: it is left out and listed. The tables come in the order in which their models first occur.
func ReadSpeeds(file string, r io.Reader) ([]SpeedTable, []RejectedSpeed, error) {
	t := newRows(file, r, "model", "mode", "global_batch", "ps", "workers", "samples_per_s")
	var tables []SpeedTable
	var rejected []RejectedSpeed
	for t.next() {
		head := SpeedTable{Model: t.text("model"), Mode: t.text("mode"), Batch: t.count("global_batch", 1)}
		p := estimate.Probe{Servers: t.count("ps", 1), Workers: t.count("workers", 1)}
		speeds := []string{t.raw("samples_per_s")}
		if t.has("worker_samples_per_s") && t.raw("worker_samples_per_s") != "" {
			speeds = append(speeds, strings.Split(t.raw("worker_samples_per_s"), ";")...)
		}
		if t.err != nil {
			break
		}
		if problem := failed(speeds); problem != "" {
			rejected = append(rejected, RejectedSpeed{t.line, head.Model, head.Mode, p.Servers, p.Workers, problem})
			continue
		}
		total, _ := strconv.ParseFloat(speeds[0], 64)
		p.Speed = total / float64(head.Batch)
		i := slices.IndexFunc(tables, func(o SpeedTable) bool { return o.Model == head.Model && o.Mode == head.Mode && o.Batch == head.Batch })
		if i < 0 {
			i, tables = len(tables), append(tables, head)
		}
		tables[i].Probes, tables[i].Lines = append(tables[i].Probes, p), append(tables[i].Lines, t.line)
	}
	if t.err != nil {
		return nil, nil, t.err
	}
	return tables, rejected, nil
}

// failed says which of the speeds, first the job's, then the workers', shows that a measurement failed; or "".
func failed(speeds []string) string {
	for i, s := range speeds {
		if x, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err != nil || !(x > 0) || math.IsInf(x, 1) {
			if i == 0 {
				return fmt.Sprintf("samples_per_s is %q, not positive and finite", s)
			}
			return fmt.Sprintf("worker_samples_per_s of worker %d is %q, not positive and finite", i-1, s)
		}
	}
	return ""
}
