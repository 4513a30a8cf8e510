package main

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/scheduler/estimate"
	"optimus/spec"
	"optimus/telemetry"
)

const fitSpeedOp = "fit speed"

// speedOptions are the flags of fit speed.
type speedOptions struct {
	model, mode      string
	servers, workers []int // of the predictions
	predict, paper   bool
}

func fitSpeedCommand(a *app) *cobra.Command {
	o := speedOptions{}
	c := &cobra.Command{
		Use:   "speed FILE",
		Short: "Fit how a job's speed depends on its servers and workers",
		Long: `Fit the time of a step as a function of servers p and workers w to measured speeds,
and predict those that were not measured:

  sync    f = 1/(θ₀M/w + θ₁ + θ₂w/p + θ₃w + θ₄p)
  async   f = w/(θ₀ + θ₁w/p + θ₂w + θ₃p)

A run's telemetry gives one measurement for each generation. Failed ones are left out
and listed.`,
		Example: "  optimus fit speed testbed_speed.csv --model resnet-50\n  optimus fit speed testbed_speed.csv --model resnet-50 --predict --servers 4,8 --workers 4,8,16\n  optimus fit speed cnn-rand-1 --predict",
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("servers") || c.Flags().Changed("workers") {
				o.predict = true
			}
			if err := o.check(c); err != nil {
				return err
			}
			return a.fitSpeed(args[0], o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "the model of a table that holds several")
	f.StringVar(&o.mode, "mode", "", "sync or async (default: what the file or the job says)")
	f.BoolVar(&o.predict, "predict", false, "predict speeds, and say what to measure next")
	f.IntSliceVar(&o.servers, "servers", nil, "numbers of servers to predict for, such as 1,2,4 (default: those measured)")
	f.IntSliceVar(&o.workers, "workers", nil, "numbers of workers to predict for (default: those measured)")
	f.BoolVar(&o.paper, "paper", false, "predict by the equation alone, without the smooth deviation from it that the measurements show")
	return c
}

func (o *speedOptions) check(c *cobra.Command) error {
	if o.mode != "" && o.mode != "sync" && o.mode != "async" {
		return usageError(c, fmt.Errorf("--mode is %q", o.mode), "allowed: sync, async")
	}
	for name, list := range map[string][]int{"servers": o.servers, "workers": o.workers} {
		if len(list) > 0 && (slices.Min(list) < 1 || slices.Max(list) > spec.MaxMembers) {
			return usageError(c, fmt.Errorf("--%s is %v", name, list), fmt.Sprintf("allowed: numbers from 1 to %d such as 1,2,4", spec.MaxMembers))
		}
	}
	return nil
}

// mostPredictions bounds the design of the next measurement, which takes a matrix of
// all candidates.
const mostPredictions = 2000

// speedFitted is the JSON form of a fitted speed.
type speedFitted struct {
	Model        string    `json:"model,omitempty"`
	Form         string    `json:"form"`
	Terms        []string  `json:"terms"`
	Batch        int       `json:"batch,omitempty"` // M
	Coefficients []float64 `json:"coefficients"`
	Residual     float64   `json:"residual"` // root mean square of the equation's relative errors
	Points       int       `json:"points"`
	Rejected     int       `json:"rejected"`

	Rejections  []rejection       `json:"rejections"`
	Predictions []speedPrediction `json:"predictions,omitempty"`
	Next        *configuration    `json:"next,omitempty"` // to measure
}

type configuration struct {
	Servers int `json:"servers"`
	Workers int `json:"workers"`
}

type speedPrediction struct {
	configuration
	StepsPerS spec.Number `json:"steps_per_s"`
	StdErr    spec.Number `json:"stderr"`
	interval
	Measured spec.Number `json:"measured"` // mean, where it was
}

func (a *app) fitSpeed(file string, o speedOptions) error {
	m, err := openSpeeds(file, o)
	if err != nil {
		return err
	}
	form := estimate.Async()
	if m.sync {
		form = estimate.Sync(m.batch)
	}
	fit, err := estimate.FitSpeed(form, m.probes)
	if err != nil {
		return needsMore(fitSpeedOp, file, err, m.rejected)
	}
	out := fittedSpeed(m, fit)
	if o.predict {
		if !o.paper {
			if fit, err = estimate.Refine(form, m.probes); err != nil {
				return failure.E(fitSpeedOp, file, "", err, "")
			}
		}
		if err := out.predict(m, fit, o); err != nil {
			return failure.E(fitSpeedOp, file, failure.InvalidArgument, err, fmt.Sprintf("allowed: up to %d; give fewer --servers and --workers", mostPredictions))
		}
	}
	return a.printSpeed(out)
}

// openSpeeds reads the measurements of a job, of its telemetry, or of a table.
func openSpeeds(file string, o speedOptions) (speeds, error) {
	in, err := openFitInput(fitSpeedOp, file)
	if err != nil {
		return speeds{}, err
	}
	if in.table != nil {
		defer in.table.Close()
		m, err := readSpeeds(file, in.table, o.model, o.mode)
		if err != nil {
			return m, inTable(fitSpeedOp, file, err, "")
		}
		return m, nil
	}
	if o.model != "" && o.model != in.asked.Job.Workload {
		return speeds{}, failure.E(fitSpeedOp, file, failure.InvalidArgument, errors.New("--model chooses rows of a table; this is the telemetry of one job"), "")
	}
	mode := o.mode
	if mode == "" {
		mode = string(in.asked.Job.Mode)
	}
	sync, known := modes[mode]
	if !known {
		return speeds{}, failure.E(fitSpeedOp, file, failure.InvalidArgument, errors.New("nothing beside it says whether the job was synchronous"), "say it with --mode sync or async")
	}
	steps, err := telemetry.History(in.records)
	if err != nil {
		return speeds{}, failure.E(fitSpeedOp, file, failure.Corrupt, err, "")
	}
	m := measuredSpeeds(steps, sync)
	m.model = in.asked.Job.Workload
	return m, nil
}

func fittedSpeed(m speeds, fit estimate.SpeedFit) speedFitted {
	out := speedFitted{Model: m.model, Form: fit.Form.Name, Terms: fit.Form.Terms, Coefficients: fit.Theta, Points: fit.Used,
		Rejections: append([]rejection{}, m.rejected...)}
	if m.sync {
		out.Batch = m.batch
	}
	left := map[int]bool{}
	for _, r := range fit.Rejected {
		left[r.Index] = true
		at := m.where[r.Index]
		at.Reason = r.Reason
		out.Rejections = append(out.Rejections, at)
	}
	out.Rejected = len(out.Rejections)
	sum := 0.0
	for i, p := range m.probes {
		if f, _ := fit.At(p.Servers, p.Workers); !left[i] {
			sum += (f/p.Speed - 1) * (f/p.Speed - 1)
		}
	}
	out.Residual = math.Sqrt(sum / float64(fit.Used))
	return out
}

// predict fills in the predictions for every pair of the counts asked for.
func (out *speedFitted) predict(m speeds, fit estimate.SpeedFit, o speedOptions) error {
	ps, ws := o.servers, o.workers
	if len(ps) == 0 {
		ps = distinct(m.probes, func(p estimate.Probe) int { return p.Servers })
	}
	if len(ws) == 0 {
		ws = distinct(m.probes, func(p estimate.Probe) int { return p.Workers })
	}
	if n := len(ps) * len(ws); n > mostPredictions {
		return fmt.Errorf("%d pairs of servers and workers", n)
	}
	var candidates []estimate.Probe
	for _, p := range ps {
		for _, w := range ws {
			candidates = append(candidates, estimate.Probe{Servers: p, Workers: w})
			f, stderr := fit.At(p, w)
			out.Predictions = append(out.Predictions, speedPrediction{configuration{p, w}, spec.Number(f), spec.Number(stderr), normal(f, stderr), m.at(p, w)})
		}
	}
	if next, ok := estimate.NextProbe(fit.Form, slices.Concat(m.probes, m.failed), candidates); ok {
		out.Next = &configuration{next.Servers, next.Workers}
	}
	return nil
}

// at returns the mean of the measurements of a configuration; NaN without any.
func (s *speeds) at(servers, workers int) spec.Number {
	sum, n := 0.0, 0.0
	for _, p := range s.probes {
		if p.Servers == servers && p.Workers == workers {
			sum, n = sum+p.Speed, n+1
		}
	}
	return spec.Number(sum / n)
}

func distinct(probes []estimate.Probe, of func(estimate.Probe) int) []int {
	var out []int
	for _, p := range probes {
		out = append(out, of(p))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (a *app) printSpeed(out speedFitted) error {
	t := table{columns: []string{"MODEL", "FORM", "BATCH", "RESIDUAL", "POINTS", "REJECTED"}, rows: [][]string{{
		orDash(out.Model), out.Form, orDash(out.Batch), humanPercent(out.Residual), fmt.Sprint(out.Points), fmt.Sprint(out.Rejected),
	}}}
	if !a.forPeople() {
		return a.print(out, t)
	}
	theta := table{columns: []string{"TERM", "SECONDS"}}
	for i, v := range out.Coefficients {
		theta.rows = append(theta.rows, []string{out.Terms[i], fmt.Sprintf("%.4g", v)})
	}
	parts := []table{t, theta}
	if len(out.Predictions) > 0 {
		p := table{columns: []string{"SERVERS", "WORKERS", "STEP/S", "±", "90 %", "MEASURED"}}
		for _, s := range out.Predictions {
			p.rows = append(p.rows, []string{fmt.Sprint(s.Servers), fmt.Sprint(s.Workers), s.StepsPerS.String(), s.StdErr.String(), s.interval.String(), s.Measured.String()})
		}
		parts = append(parts, p)
	}
	if n := out.Next; n != nil {
		parts = append(parts, table{columns: []string{"MEASURE NEXT", "SERVERS", "WORKERS"}, rows: [][]string{{"", fmt.Sprint(n.Servers), fmt.Sprint(n.Workers)}}})
	}
	return a.report(parts, out.Rejections)
}

// orDash writes a value, or "-" for none.
func orDash[T comparable](v T) string {
	var none T
	if v == none {
		return "-"
	}
	return fmt.Sprint(v)
}
