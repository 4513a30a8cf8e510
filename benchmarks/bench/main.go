// Command bench measures how fast the project computes, against what is installed:
// matrix products against OpenBLAS, convolutions against oneDNN, whole training steps
// against PyTorch, rounds of the scheduler against the figures of its papers. `optimus bench` runs it; it is a program of its own because it opens
// those libraries, for which it must be linked with libc, as the trainer is not.
//
// All sides of a comparison take turns within one run. Ratios above 1 mean that we
// are faster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"optimus/internal/failure"
	"optimus/internal/suggest"
	"optimus/models"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "optimus bench:", failure.E("", "", "", err, ""))
	}
	os.Exit(failure.ExitCode(err))
}

// options are the command line's.
type options struct {
	models  []string // with model and all
	batch   int
	size    string
	threads []int
	rounds  int
	python  string
	output  string

	progress io.Writer
}

const usage = `Usage: bench gemm|conv|model NAME|scheduler|all [FLAGS]

  gemm         matrix products, against OpenBLAS
  conv         convolutions of ResNet-50, against oneDNN
  model NAME   a training step of a workload, or of all, against PyTorch
  scheduler    a round of the scheduler, against the figures of its paper
  all          all of these

`

// run measures what args ask for and prints it; progress tells how far it is.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	what, o, err := parse(args, out)
	if err != nil {
		return err
	}
	o.progress = progress
	rep := report{Machine: machine()}
	err = rep.measure(ctx, what, o)
	if rep.empty() {
		return err
	}
	rep.Machine.LoadAfter = load()
	return errors.Join(err, rep.print(out, o.output)) // what was measured before an error counts
}

// measure fills in the parts that were asked for.
func (r *report) measure(ctx context.Context, what string, o options) error {
	for _, part := range []struct {
		name    string
		measure func(context.Context, options, *report) error
	}{{"gemm", measureGemm}, {"conv", measureConv}, {"model", measureModels}, {"scheduler", measureScheduler}} {
		if what != part.name && what != "all" {
			continue
		}
		if err := part.measure(ctx, o, r); err != nil {
			return err
		}
	}
	return nil
}

// parse reads the command line.
func parse(args []string, out io.Writer) (what string, o options, err error) {
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { fmt.Fprint(out, usage, flags.FlagUsages()) }
	flags.IntVar(&o.batch, "batch", 0, "examples in a step (default: the workload's, or a worker's share of it)")
	flags.StringVar(&o.size, "size", "", "size of the workload, tiny without a comparison (default: the paper's)")
	flags.IntSliceVar(&o.threads, "threads", []int{1}, "threads of a step, such as 1,2")
	flags.IntVar(&o.rounds, "rounds", 5, "turns of each side")
	flags.StringVar(&o.python, "python", "", "Python interpreter that has PyTorch (default: looked for)")
	flags.StringVarP(&o.output, "output", "o", "table", "output: table|json")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return "", o, err
		}
		return "", o, refused(err.Error())
	}
	what, o.models, err = subject(flags.Args())
	switch {
	case err != nil:
	case o.batch < 0 || o.rounds < 1:
		err = refused(fmt.Sprintf("--batch is %d and --rounds %d; allowed: --batch from 0, --rounds from 1", o.batch, o.rounds))
	case len(o.threads) == 0 || slices.Min(o.threads) < 1:
		err = refused(fmt.Sprintf("--threads is %v; allowed: positive numbers such as 1,2", o.threads))
	case o.output != "table" && o.output != "json":
		err = refused(fmt.Sprintf("--output is %q; allowed: table|json", o.output))
	}
	return what, o, err
}

// subject reads the words of the command line, and which models they mean.
func subject(words []string) (what string, workloads []string, err error) {
	if len(words) == 0 {
		return "", nil, refused("missing what to measure; allowed: gemm|conv|model NAME|scheduler|all")
	}
	what, words = words[0], words[1:]
	if what == "model" {
		if len(words) == 0 {
			return "", nil, refused("missing NAME; `optimus models` lists them, all stands for all of them")
		}
		workloads, words = words[:1], words[1:]
	}
	if len(words) > 0 {
		return "", nil, refused(fmt.Sprintf("unexpected argument %q", words[0]))
	}
	switch {
	case slices.Contains([]string{"gemm", "conv", "scheduler"}, what):
	case what == "all" || what == "model" && workloads[0] == "all":
		workloads = nil
		for _, w := range models.All() {
			workloads = append(workloads, w.Name)
		}
	case what == "model":
		if _, err := models.Lookup(workloads[0]); err != nil {
			return "", nil, refused(err.Error())
		}
	default:
		_, err = suggest.Find(what, []string{"gemm", "conv", "model", "scheduler", "all"}, func(s string) string { return s }, errors.New("unknown measurement"))
		return "", nil, refused(err.Error())
	}
	return what, workloads, nil
}

func refused(why string) error {
	return failure.E("", "", failure.InvalidArgument, errors.New(why), "")
}

// load is how many processes wanted the processor in the last minute, by the system's account; 0 if it does not say.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	x, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return x
}
