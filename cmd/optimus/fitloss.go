package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/scheduler/estimate"
	"optimus/spec"
	"optimus/telemetry"
)

const fitLossOp = "fit loss"

// lossOptions are the flags of fit loss.
type lossOptions struct {
	examples   int64
	thresholds []float64
	patience   int
	predict    bool
}

func fitLossCommand(a *app) *cobra.Command {
	o := lossOptions{}
	c := &cobra.Command{
		Use:   "loss FILE",
		Short: "Fit a job's loss curve, and predict when it will have converged",
		Long: `Fit the curve l = 1/(β₀k + β₁) + β₂ to the losses of a job, with k in epochs, and
predict when it will have converged: when an epoch lowers the loss by less than a
fraction --threshold of the largest one, --patience epochs running.`,
		Example: "  optimus fit loss cnn-rand-1\n  optimus fit loss cnn-rand-1 --predict --threshold 0.01,0.05\n  optimus fit loss telemetry.jsonl --examples 9596 -o json",
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("threshold") || c.Flags().Changed("patience") {
				o.predict = true
			}
			if err := o.check(c); err != nil {
				return err
			}
			return a.fitLoss(args[0], o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.predict, "predict", false, "predict when the job will have converged")
	f.Float64SliceVar(&o.thresholds, "threshold", []float64{0.01}, "fall of the loss in an epoch, as a part of the largest loss, below which the job is done; several are told one after the other")
	f.IntVar(&o.patience, "patience", 3, "epochs in a row that must fall less than the threshold")
	f.Int64Var(&o.examples, "examples", 0, "examples in an epoch (default: what the job's folder or its epochs say)")
	return c
}

func (o *lossOptions) check(c *cobra.Command) error {
	for _, t := range o.thresholds {
		if !(t > 0 && t < 1) {
			return usageError(c, fmt.Errorf("--threshold is %v", t), "allowed: above 0 and below 1, such as 0.01")
		}
	}
	switch {
	case len(o.thresholds) == 0:
		return usageError(c, errors.New("--threshold is empty"), "allowed: numbers such as 0.01,0.05")
	case o.patience < 1 || o.patience > 1000:
		return usageError(c, fmt.Errorf("--patience is %d", o.patience), "allowed: 1 to 1000")
	case o.examples < 0:
		return usageError(c, fmt.Errorf("--examples is %d", o.examples), "allowed: at least 1, or 0 for what the job says")
	}
	return nil
}

// lossFitted is the JSON form of a fitted loss curve.
type lossFitted struct {
	// Coefficients are β₀, β₁, β₂ of l/unit = 1/(β₀(k − from)+β₁)+β₂ with k in epochs.
	Coefficients []float64 `json:"coefficients"`
	Residual     float64   `json:"residual"` // root mean square of the curve's errors, as parts of the unit
	Points       int       `json:"points"`
	Rejected     int       `json:"rejected"`
	Outliers     int       `json:"outliers"`
	Unit         float64   `json:"unit"`
	From         float64   `json:"from"`
	Epochs       float64   `json:"epochs"` // done

	Rejections  []rejection      `json:"rejections"`
	Predictions []lossPrediction `json:"predictions,omitempty"`
}

// lossPrediction says when a job will have converged, by one threshold.
type lossPrediction struct {
	Threshold    float64     `json:"threshold"`
	Epochs       spec.Number `json:"epochs"` // from the start of training
	interval                 // of Epochs
	EpochsLeft   spec.Number `json:"epochs_left"`
	StepsLeft    spec.Number `json:"steps_left"` // of the batch of the last step
	ExamplesLeft spec.Number `json:"examples_left"`
}

func (a *app) fitLoss(file string, o lossOptions) error {
	in, err := openFitInput(fitLossOp, file)
	if err != nil {
		return err
	}
	if in.table != nil {
		defer in.table.Close()
		return failure.E(fitLossOp, file, failure.Corrupt, errors.New("it is not telemetry: the first character is not {"), "give a job's name, or its telemetry.jsonl")
	}
	steps, err := telemetry.History(in.records)
	if err != nil {
		return failure.E(fitLossOp, file, failure.Corrupt, err, "")
	}
	epoch, err := epochExamples(o.examples, in.asked, steps)
	if err != nil {
		return failure.E(fitLossOp, file, failure.InvalidArgument, err, "give it with --examples N")
	}
	points, rejected := lossPoints(steps)
	conv := estimate.Convergence{History: estimate.History{EpochExamples: epoch}, Threshold: o.thresholds[0], Patience: o.patience}
	for _, p := range points {
		if err := conv.Add(p); err != nil {
			return failure.E(fitLossOp, file, failure.Corrupt, err, "")
		}
	}
	forecast, err := conv.Forecast()
	if err != nil {
		return needsMore(fitLossOp, file, err, rejected)
	}
	out := fittedLoss(&conv, forecast, len(points), rejected)
	if o.predict {
		for _, t := range o.thresholds {
			conv.Threshold = t
			if forecast, err = conv.Forecast(); err != nil {
				return failure.E(fitLossOp, file, "", err, "")
			}
			out.Predictions = append(out.Predictions, predictedLoss(t, forecast, points[len(points)-1].M))
		}
	}
	return a.printLoss(out)
}

// epochExamples returns the number of examples in an epoch: as given, as the job's
// folder says, or as the run's first whole epoch shows.
func epochExamples(given int64, a asked, steps []telemetry.Step) (int64, error) {
	switch {
	case given > 0:
		return given, nil
	case a.Plan.Examples > 0:
		return int64(a.Plan.Examples), nil
	}
	for i := 1; i < len(steps); i++ {
		if steps[i-1].Epoch == 0 && steps[i].Epoch == 1 {
			return steps[i-1].Examples, nil
		}
	}
	return 0, errors.New("the run does not say how many examples an epoch has")
}

// lossPoints returns the losses of a run, and what must be left out of them. Steps
// that were skipped used no examples; they are no points.
func lossPoints(steps []telemetry.Step) (points []estimate.LossPoint, rejected []rejection) {
	for _, s := range steps {
		reject := func(format string, args ...any) {
			rejected = append(rejected, rejection{Step: s.Step, Reason: fmt.Sprintf(format, args...)})
		}
		switch loss := float64(s.Loss); {
		case s.BatchExamples == 0 && s.Weight == 0:
			reject("it was skipped")
		case math.IsNaN(loss) || math.IsInf(loss, 0) || loss < 0:
			reject("loss is %v; the curve takes finite losses, at least 0", loss)
		case s.Weight <= 0:
			reject("weight is %d; it counts the examples or tokens that the loss is the mean over", s.Weight)
		case s.Examples <= 0:
			reject("examples is %d; the count includes the step's own", s.Examples)
		default:
			points = append(points, estimate.LossPoint{Generation: s.Generation, Step: s.Step, Examples: s.Examples, Epoch: s.Epoch,
				Loss: loss, Weight: float64(s.Weight), LearningRate: s.LearningRate, M: s.M})
		}
	}
	return points, rejected
}

func fittedLoss(conv *estimate.Convergence, f estimate.Forecast, points int, rejected []rejection) lossFitted {
	c := f.Curve
	sum, weight := 0.0, 0.0
	for _, b := range conv.Points() {
		e := (c.At(b.At) - b.Loss) / c.Unit
		sum, weight = sum+float64(b.Steps)*e*e, weight+float64(b.Steps)
	}
	return lossFitted{
		Coefficients: []float64{c.Beta0, c.Beta1, c.Beta2}, Unit: c.Unit, From: c.From, Residual: math.Sqrt(sum / weight),
		Points: points, Rejected: len(rejected), Rejections: append([]rejection{}, rejected...), Outliers: f.Outliers, Epochs: conv.Done(),
	}
}

func predictedLoss(threshold float64, f estimate.Forecast, batch int) lossPrediction {
	p := lossPrediction{
		Threshold: threshold, Epochs: spec.Number(f.Total), interval: interval{spec.Number(f.Low), spec.Number(f.High)},
		EpochsLeft: spec.Number(f.Remaining), StepsLeft: spec.Number(math.NaN()), ExamplesLeft: spec.Number(math.Ceil(f.RemainingExamples)),
	}
	if batch > 0 {
		p.StepsLeft = spec.Number(math.Ceil(f.RemainingExamples / float64(batch)))
	}
	return p
}

func (a *app) printLoss(out lossFitted) error {
	t := table{columns: []string{"BETA0", "BETA1", "BETA2", "UNIT", "FROM", "RESIDUAL", "POINTS", "REJECTED", "OUTLIERS", "EPOCHS"}, rows: [][]string{{
		fmt.Sprintf("%.5g", out.Coefficients[0]), fmt.Sprintf("%.5g", out.Coefficients[1]), fmt.Sprintf("%.5g", out.Coefficients[2]),
		fmt.Sprintf("%.5g", out.Unit), fmt.Sprintf("%.4g", out.From), humanPercent(out.Residual), fmt.Sprint(out.Points), fmt.Sprint(out.Rejected),
		fmt.Sprint(out.Outliers), fmt.Sprintf("%.4g", out.Epochs),
	}}}
	if !a.forPeople() {
		return a.print(out, t)
	}
	parts := []table{t}
	if len(out.Predictions) > 0 {
		p := table{columns: []string{"THRESHOLD", "EPOCHS", "90 %", "EPOCHS LEFT", "STEPS LEFT", "EXAMPLES LEFT"}}
		for _, l := range out.Predictions {
			p.rows = append(p.rows, []string{fmt.Sprint(l.Threshold), l.Epochs.String(), l.interval.String(), l.EpochsLeft.String(),
				whole(l.StepsLeft), whole(l.ExamplesLeft)})
		}
		parts = append(parts, p)
	}
	return a.report(parts, out.Rejections)
}

// String returns for example "36.1 to 40.2".
func (i interval) String() string {
	return strings.Join([]string{i.Low.String(), i.High.String()}, " to ")
}

// whole writes a count that may not be known.
func whole(n spec.Number) string {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) && math.Abs(v) < 1e15 {
		return fmt.Sprint(int64(v))
	}
	return "-"
}
