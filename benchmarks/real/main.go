// Command real trains the workloads on small real data sets, each for some
// minutes with two servers and two workers, and compares what they reach with
// what a trivial method does:
//
//	go run ./benchmarks/real --data DIR [ROW…]
//
// DIR holds a folder for each set, in its original format: mr, ptb, cifar10 and
// so on. The settings of each row are in rows.go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"optimus/internal/shared"
	"optimus/spec"
	"optimus/train"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "real:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fl := flag.NewFlagSet("real", flag.ContinueOnError)
	dir := fl.String("data", "", "folder of the data sets (default: sets of the folder shared beside the checkout)")
	asJSON := fl.Bool("json", false, "print a line of JSON for each row")
	fl.Usage = func() {
		fmt.Fprintln(fl.Output(), "usage: real [--data DIR] [--json] [ROW…]\nrows:", strings.Join(rowNames(), ", "))
		fl.PrintDefaults()
	}
	if err := fl.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *dir == "" {
		root, err := shared.Root()
		if err != nil {
			return fmt.Errorf("no --data given, and there is no folder shared: %w", err)
		}
		*dir = filepath.Join(root, "data", "sets")
	}
	list, err := chosen(fl.Args())
	if err != nil {
		return err
	}
	state, err := os.MkdirTemp("", "optimus-real")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	var missed []string
	for _, r := range list {
		o, err := r.measure(ctx, &bench{data: *dir, state: state})
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		if *asJSON {
			line, err := json.Marshal(o)
			if err != nil {
				return err
			}
			fmt.Println(string(line))
		} else {
			fmt.Println(o)
		}
		if !o.Reached {
			missed = append(missed, r.Name)
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("not reached: %s", strings.Join(missed, ", "))
	}
	return nil
}

// chosen returns the rows of these names, all for none.
func chosen(names []string) ([]row, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.long }), nil
	}
	var list []row
	for _, name := range names {
		i := slices.IndexFunc(rows, func(r row) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no row %q; there are %s", name, strings.Join(rowNames(), ", "))
		}
		list = append(list, rows[i])
	}
	return list, nil
}

func rowNames() (list []string) {
	for _, r := range rows {
		list = append(list, r.Name)
	}
	return list
}

// outcome is what one row came to.
type outcome struct {
	Row     string    `json:"row"`
	Metric  string    `json:"metric"`
	Value   float64   `json:"value"`
	Bar     float64   `json:"bar"`
	Above   bool      `json:"above"` // the value must be at least the bar, else below it
	Reached bool      `json:"reached"`
	Each    []float64 `json:"each,omitempty"` // of each seed
	Steps   int       `json:"steps"`
	WallS   float64   `json:"wall_s"`
}

func (o outcome) String() string {
	sign, verdict := "<", "reached"
	if o.Above {
		sign = "≥"
	}
	if !o.Reached {
		verdict = "NOT REACHED"
	}
	return fmt.Sprintf("%-12s %s %.4g (wanted %s %g): %s; %d steps, %.0f s", o.Row, o.Metric, o.Value, sign, o.Bar, verdict, o.Steps, o.WallS)
}

// bench is where rows find data and put jobs.
type bench struct {
	data, state string
	jobs        int
}

// train runs a job, on its own task if that is not nil, and tells of progress on
// standard error.
func (b *bench) train(ctx context.Context, j spec.TrainingJob, t *train.Task) (spec.Result, error) {
	b.jobs++
	j.Name = fmt.Sprintf("%s-%d", j.Workload, b.jobs)
	j.Servers.Count, j.Workers.Count = 2, 2
	last := time.Now()
	notify := func(s spec.Status) {
		if time.Since(last) < 10*time.Second {
			return
		}
		last = time.Now()
		metric := ""
		if s.Metric != nil {
			metric = fmt.Sprintf(", %s %.4g", s.Metric.Name, float64(s.Metric.Value))
		}
		fmt.Fprintf(os.Stderr, "%s: step %d, epoch %.1f, loss %.4g%s\n", j.Name, s.Step, s.Epoch, float64(s.Loss), metric)
	}
	r, err := train.Run(ctx, j, train.Options{Task: t, Root: b.state, Notify: notify})
	if err == nil && r.Metric == nil {
		err = errors.New("the job has no evaluation")
	}
	return r, err
}
