package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"optimus/internal/failure"
	"optimus/internal/suggest"
	"optimus/scheduler/estimate"
	"optimus/scheduler/trace"
	"optimus/spec"
	"optimus/telemetry"
)

// speeds are the measured speeds of one job or model.
type speeds struct {
	model    string
	sync     bool
	batch    int // examples in a step
	probes   []estimate.Probe
	where    []rejection      // of each probe, without a reason
	failed   []estimate.Probe // places of those that were rejected, where they can be told
	rejected []rejection
}

// modes are the ways of training, as tables and jobs call them, and whether the
// workers of a step wait for one another.
var modes = map[string]bool{
	"sync": true, "dist_sync": true, string(spec.BSP): true,
	"async": false, "dist_async": false, string(spec.ASP): false, string(spec.SSP): false,
}

// readSpeeds reads a table of measured speeds, whose format docs/formats/speed.md
// says, and keeps the rows of one model and mode. Either may be empty where there is
// only one.
func readSpeeds(file string, r io.Reader, model, mode string) (speeds, error) {
	tables, rejected, err := trace.ReadSpeeds(file, r)
	if err != nil {
		return speeds{}, err
	}
	var names []string
	for _, t := range tables {
		names = append(names, t.Model)
	}
	for _, r := range rejected {
		names = append(names, r.Model)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case len(names) == 0:
		return speeds{}, errors.New("it has no rows below its header")
	case model == "" && len(names) > 1:
		return speeds{}, fmt.Errorf("it holds %d models; choose one with --model: %s", len(names), strings.Join(names, ", "))
	case model == "":
		model = names[0]
	case !slices.Contains(names, model):
		_, err := suggest.Find(model, names, func(s string) string { return s }, errors.New("it holds no model"))
		return speeds{}, err
	}
	return ofModel(tables, rejected, model, mode)
}

// inTable is the failure for an error of a table, which may name file, line and field
// itself.
func inTable(op, file string, err error, do string) error {
	e, ok := errors.AsType[*trace.FieldError](err)
	if !ok {
		return failure.E(op, file, failure.Corrupt, err, do)
	}
	at, problem := e.File, e.Problem
	if e.Line > 0 {
		at += fmt.Sprintf(" line %d", e.Line)
	}
	if e.Field != "" {
		problem = e.Field + ": " + problem
	}
	return failure.E(op, at, failure.Corrupt, errors.New(problem), do)
}

// ofModel picks the rows of a model and, unless it is empty, a mode.
func ofModel(tables []trace.SpeedTable, rejected []trace.RejectedSpeed, model, mode string) (speeds, error) {
	out := speeds{model: model}
	for _, r := range rejected {
		if r.Model == model && (mode == "" || modes[r.Mode] == modes[mode]) {
			out.failed = append(out.failed, estimate.Probe{Servers: r.Servers, Workers: r.Workers})
			out.rejected = append(out.rejected, rejection{Line: r.Line, Reason: r.Problem})
		}
	}
	for _, t := range tables {
		sync, known := modes[t.Mode]
		switch {
		case t.Model != model || known && mode != "" && sync != modes[mode]:
			continue
		case !known:
			return out, fmt.Errorf("line %d: mode %q is neither dist_sync nor dist_async", t.Lines[0], t.Mode)
		case len(out.probes) > 0 && sync != out.sync:
			return out, fmt.Errorf("line %d: mode %q is another than in line %d; choose one with --mode sync or async", t.Lines[0], t.Mode, out.where[0].Line)
		case len(out.probes) > 0 && t.Batch != out.batch:
			return out, fmt.Errorf("line %d: global_batch %d is another than in line %d; a fit is of one batch", t.Lines[0], t.Batch, out.where[0].Line)
		}
		out.sync, out.batch, out.probes = sync, t.Batch, append(out.probes, t.Probes...)
		for _, line := range t.Lines {
			out.where = append(out.where, rejection{Line: line})
		}
	}
	if len(out.probes) == 0 {
		return out, tooFew(fmt.Errorf("it has no usable measurement of model %s", strings.TrimSpace(model+" "+mode)), out.rejected)
	}
	return out, nil
}

// leastSteps is how many steps of a generation tell its speed.
const leastSteps = 10

// measuredSpeeds returns the speed of each generation of a run, whose servers and
// workers may differ: the median time between its steps, over as many of them as there
// are workers where each worker's push is a step of its own. The median passes over
// checkpoints and evaluations.
func measuredSpeeds(steps []telemetry.Step, sync bool) speeds {
	out := speeds{sync: sync}
	slices.SortStableFunc(steps, func(a, b telemetry.Step) int { return cmp.Compare(a.Generation, b.Generation) })
	for len(steps) > 0 {
		first, n := steps[0], 1
		for n < len(steps) && steps[n].Generation == first.Generation {
			n++
		}
		of := steps[:n]
		steps = steps[n:]
		out.batch = max(out.batch, first.M)
		p, at := estimate.Probe{Servers: first.Servers, Workers: first.Workers}, rejection{Generation: first.Generation}
		stride := 1
		if !sync {
			stride = max(1, first.Workers)
		}
		if need := leastSteps + stride; len(of) < need {
			at.Reason = fmt.Sprintf("it has %d steps; %d tell a speed", len(of), need)
		} else if p.Speed = float64(stride) / medianGap(of, stride).Seconds(); !(p.Speed > 0) || math.IsInf(p.Speed, 0) {
			at.Reason = fmt.Sprintf("its speed is %v steps/s, not positive and finite", p.Speed)
		} else if p.Servers < 1 || p.Workers < 1 {
			at.Reason = fmt.Sprintf("its steps name %d servers and %d workers", p.Servers, p.Workers)
		}
		if at.Reason != "" {
			out.rejected = append(out.rejected, at)
			continue
		}
		out.probes, out.where = append(out.probes, p), append(out.where, at)
	}
	return out
}

// medianGap is the median time in which so many steps are done.
func medianGap(steps []telemetry.Step, stride int) time.Duration {
	gaps := make([]time.Duration, 0, len(steps))
	for i := stride; i < len(steps); i++ {
		gaps = append(gaps, steps[i].Time.Sub(steps[i-stride].Time))
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}
