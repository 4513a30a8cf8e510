// Data measures how fast one core reads, decodes and scales the examples of each
// workload's data set, against two things in the same run: the training step of that
// workload on one core, which must never wait for its data, and, for pictures, Pillow.
//
//	go run ./benchmarks/data --sets DIR
//
// DIR holds a folder for each set, as in the table of the package; a set that is not
// there is passed over, and said to be. Nothing is kept from one fill to the next: each
// picture and recording is decoded again. The program runs on one thread and measures
// its processor time, so other work on the machine matters little. The sides take
// turns, and figures are medians over the rounds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks/data:", err)
		os.Exit(1)
	}
}

// options are the program's flags.
type options struct {
	sets   string
	only   []string
	rounds int
	turn   time.Duration
	python string
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o := options{}
	f := flag.NewFlagSet("benchmarks/data", flag.ContinueOnError)
	f.SetOutput(progress)
	f.StringVar(&o.sets, "sets", "", "folder of the data sets")
	f.IntVar(&o.rounds, "rounds", 3, "turns of each side")
	f.DurationVar(&o.turn, "turn", 300*time.Millisecond, "least length of a turn")
	f.StringVar(&o.python, "python", "/usr/bin/python3", "a Python with Pillow")
	only := f.String("workloads", "", "names with commas between them; all if empty")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if o.sets == "" || o.rounds < 1 || f.NArg() > 0 {
		return errors.New("give --sets DIR, 1 round or more and nothing else")
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(workloads(), func(w workload) bool { return w.name == name }) {
			return fmt.Errorf("unknown workload %q", name)
		}
	}
	runtime.GOMAXPROCS(1)
	return measureAll(ctx, o, out, progress)
}

// measureAll prints a row for each workload, and says which is too slow.
func measureAll(ctx context.Context, o options, out, progress io.Writer) error {
	absent := pillowMissing(ctx, o.python)
	if absent != nil {
		fmt.Fprintln(progress, "no comparison with Pillow:", absent)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "WORKLOAD\tSET\tFILL/s\tSTEP/s\tFILL:STEP\tPILLOW/s\tFILL:PILLOW\t")
	var slow []string
	for _, w := range workloads() {
		if len(o.only) > 0 && !slices.Contains(o.only, w.name) {
			continue
		}
		fmt.Fprintln(progress, "measuring", w.name)
		r, err := measure(ctx, o, w, absent == nil)
		if errors.Is(err, errNoSet) {
			fmt.Fprintf(progress, "%s: %v\n", w.name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		fmt.Fprintf(table, "%s\t%s\t%.4g\t%.3g\t%.3g\t%s\t%s\t\n", w.name, w.folder, r.fill, r.step, r.toStep, figure(r.pillow), figure(r.toPillow))
		if r.toStep < leastToStep || r.pillow > 0 && r.toPillow < leastToPillow {
			slow = append(slow, w.name)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(slow) > 0 {
		return fmt.Errorf("below %v times the training step, or %v of Pillow: %s", leastToStep, leastToPillow, strings.Join(slow, ", "))
	}
	return nil
}

// What the data layer promises: reading takes a tenth of training at most, and pure Go
// half of Pillow's speed at least.
const (
	leastToStep   = 10
	leastToPillow = 0.5
)

// figure prints a number that may be missing.
func figure(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", v)
}
