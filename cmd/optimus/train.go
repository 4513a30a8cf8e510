package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"optimus/data/source"
	"optimus/internal/failure"
	"optimus/models"
	"optimus/paa"
	"optimus/spec"
	"optimus/train"
)

// trainFlags are the flags of train, bound to a job.
type trainFlags struct {
	job     spec.TrainingJob
	maxTime time.Duration
	verbose bool
}

func trainCommand(a *app) *cobra.Command {
	f := &trainFlags{job: spec.Default()}
	c := &cobra.Command{
		Use:   "train [WORKLOAD]",
		Short: "Train a workload with servers and workers on this machine",
		Long: `Train a workload with parameter servers and workers on this machine.

While it runs, optimus rescale changes the counts from another terminal. Ctrl-C,
SIGTERM and SIGHUP (not under nohup) write a checkpoint and leave; a second
Ctrl-C leaves at once. With --resume the workload and every setting that is not
given come from the checkpoint.`,
		Example: "  optimus train cnn-rand --servers 2 --workers 3\n  optimus train cnn-rand --data rt-polaritydata --launch process --epochs 12 -o json\n  optimus train --resume cnn-rand-1 --workers 5",
		RunE: func(c *cobra.Command, args []string) error {
			if f.job.Resume != "" {
				if err := resumeJob(c, f); err != nil {
					return err
				}
			}
			if len(args) > 0 {
				f.job.Workload = args[0]
			}
			return a.train(c, f)
		},
	}
	bindTrainFlags(c, f)
	return c
}

func bindTrainFlags(c *cobra.Command, f *trainFlags) {
	j, fl := &f.job, c.Flags()
	fl.Var(&j.Servers, "servers", "number of parameter servers, or MIN:MAX")
	fl.Var(&j.Workers, "workers", "number of workers, or MIN:MAX")
	fl.StringVar((*string)(&j.Mode), "mode", string(j.Mode), "bsp: each step waits for all workers; asp: each push is applied at once; ssp: at most --staleness steps apart")
	fl.IntVar(&j.Staleness, "staleness", 0, "ssp: how many steps a worker may be ahead")
	fl.StringVar(&j.Size, "size", "", "tiny: the same architecture, small enough to try (default: the paper's size)")
	fl.IntVar(&j.Batch, "batch", 0, "examples of one step over all workers (default: the workload's)")
	fl.IntVar(&j.Epochs, "epochs", 0, "passes over the data (default: the workload's)")
	fl.IntVar(&j.Steps, "steps", 0, "end after so many steps")
	fl.DurationVar(&f.maxTime, "max-time", 0, "end with a checkpoint after this time, such as 90s or 2h")
	fl.StringVar(&j.Data, "data", "", "folder or URL of the data set, such as s3://bucket/folder (default: a generated set of the same shape)")
	fl.IntVar(&j.SkipBad, "skip-bad", 0, "leave out so many pictures or recordings that cannot be read, and list them; one more is an error")
	fl.IntVar(&j.Overfit, "overfit", 0, "train and evaluate on so many examples alone, to see whether they are learned by heart")
	fl.IntVar(&j.Merges, "merges", 0, "seq2seq: cut words to pieces by so many merges of a byte-pair encoding, -1 for whole words (default: the workload's)")
	fl.Uint64Var(&j.Seed, "seed", j.Seed, "seed of initial values, order and split")
	fl.StringVar(&j.Optimizer.Name, "optimizer", "", "sgd, momentum, rmsprop or adam (default: the workload's)")
	fl.Float64Var(&j.LR, "lr", 0, "learning rate (default: the workload's)")
	fl.Var((*epochList)(&j.LRDrops), "lr-drops", "epochs after which the learning rate is divided by ten, such as 20,30 (default: the workload's)")
	fl.IntVar(&j.LRWarmup, "lr-warmup", 0, "steps in which the learning rate first rises to its value")
	fl.Float64Var(&j.Optimizer.Momentum, "momentum", 0, "momentum of sgd")
	fl.Float64Var(&j.Optimizer.ClipNorm, "clip-norm", 0, "bound on the norm of the whole mean gradient (default: the workload's)")
	fl.StringVar((*string)(&j.Launch), "launch", string(j.Launch), "inproc: goroutines; process: a child process per task")
	fl.StringVar(&j.Name, "job", "", "name of the job (default: the workload's with a number)")
	fl.StringVar(&j.Resume, "resume", "", "go on from the newest checkpoint of a job or folder")
	fl.IntVar(&j.CheckpointEvery, "checkpoint-every", 0, "steps between checkpoints (default: one at the end)")
	fl.IntVar(&j.Keep, "keep", j.Keep, "checkpoints to keep")
	fl.StringVar(&j.CheckpointDir, "checkpoint-dir", "", "folder for checkpoints (default: in the job's folder)")
	fl.StringVar((*string)(&j.Assignment), "assignment", string(j.Assignment), fmt.Sprintf("rule that places pieces on servers, one of %v", paa.Rules()))
	fl.StringVar((*string)(&j.NonFinite), "non-finite", string(j.NonFinite), "skip the step of a NaN or infinite gradient, or stop the job")
	fl.BoolVar(&f.verbose, "verbose", false, "show the job's log on standard error as well")
}

// epochList is a flag's value such as 20,30.
type epochList []int

func (l *epochList) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*l)), " ", ","), "[]")
}

func (l *epochList) Set(s string) error {
	var list epochList
	for _, field := range strings.Split(s, ",") {
		n, err := strconv.Atoi(field)
		if err != nil {
			return fmt.Errorf("%q is no number of epochs; give them as in 20,30", field)
		}
		list = append(list, n)
	}
	*l = list
	return nil
}

func (l *epochList) Type() string { return "N,N" }

// train validates the job and runs it in the foreground.
func (a *app) train(c *cobra.Command, f *trainFlags) error {
	j := f.job
	j.MaxTime = spec.Duration(f.maxTime)
	if j.Workload == "" {
		return usageError(c, errors.New("missing WORKLOAD"), "`optimus models` lists them")
	}
	if _, err := models.Lookup(j.Workload); err != nil {
		return failure.E("train", "", failure.InvalidArgument, err, "")
	}
	for _, place := range []struct { // child processes and later runs have other folders
		path     *string
		absolute func(string) (string, error)
	}{{&j.Data, source.Absolute}, {&j.CheckpointDir, filepath.Abs}} {
		if *place.path == "" {
			continue
		}
		abs, err := place.absolute(*place.path)
		if err != nil {
			return failure.E("find", *place.path, "", err, "give an absolute path")
		}
		*place.path = abs
	}
	if c.Flags().Changed("batch") && j.Batch == 0 { // not given, it is the workload's
		return usageError(c, &spec.FieldError{Field: "--batch", Value: 0, Allowed: "at least 1"}, "")
	}
	check := j
	if check.Name == "" {
		check.Name = "unnamed"
	}
	if err := check.Validate(); err != nil {
		return usageError(c, fieldsAsFlags(err), "")
	}
	p := newProgress(a.stderr, j, f.verbose)
	var log *slog.Logger // beside the job's own
	if f.verbose {
		log = logger(a.stderr)
	}
	signal.Ignore(syscall.SIGPIPE) // a job outlives the reader of its progress
	result, err := train.Run(c.Context(), j, train.Options{Child: []string{"member"}, Log: log, Notify: p.show})
	p.close()
	if err != nil && (result.Job == "" || failure.KindOf(err) != failure.Canceled) {
		return err
	}
	return errors.Join(a.printResult(result), err) // one that was stopped has a result as well
}

// fieldsAsFlags names the flags for the fields that Validate found wrong.
func fieldsAsFlags(err error) error {
	var errs []error
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		if field, ok := errors.AsType[*spec.FieldError](e); ok {
			name := strings.ReplaceAll(strings.TrimPrefix(field.Field, "optimizer."), "_", "-")
			if name == "name" {
				name = "job"
			}
			e = &spec.FieldError{Field: "--" + name, Value: field.Value, Allowed: field.Allowed}
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

func (a *app) printResult(r spec.Result) error {
	if a.format == asJSON {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s\n", b)
		return err
	}
	metric := "-"
	if r.Metric != nil {
		metric = fmt.Sprintf("%s %.4f", r.Metric.Name, float64(r.Metric.Value))
	}
	return a.print(r, table{columns: []string{"JOB", "SERVERS", "WORKERS", "STEPS", "EPOCHS", "LOSS", "METRIC", "EXAMPLES/S", "WALL", "RESCALES", "+CHECKPOINT", "+PARAMS"},
		rows: [][]string{{r.Job, fmt.Sprint(r.Servers), fmt.Sprint(r.Workers), fmt.Sprint(r.Steps), fmt.Sprintf("%.1f", r.Epochs), fmt.Sprintf("%.4f", float64(r.Loss)), metric,
			fmt.Sprintf("%.0f", float64(r.ExamplesPerS)), fmt.Sprintf("%.1fs", r.WallS), fmt.Sprint(len(r.Rescales)), r.Checkpoint, r.ParamsSHA256}}})
}
