package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/internal/jobname"
	"optimus/internal/rundir"
	"optimus/scheduler/estimate"
	"optimus/spec"
	"optimus/telemetry"
)

func fitCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "fit",
		Short: "Predict from measurements how long and how fast a job will train",
		Long: `Fit the scheduler's estimators to what a job has shown, and predict from them.

FILE is the name of a job, its folder, or a file of telemetry; for speeds also a
table of measurements as CSV.`,
	}
	c.AddCommand(fitLossCommand(a), fitSpeedCommand(a))
	return c
}

// rejection is a measurement that was left out of a fit. Line is its line in a table,
// Step its step in a run's telemetry, Generation the run's generation.
type rejection struct {
	Line       int    `json:"line,omitempty"`
	Step       int64  `json:"step,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Reason     string `json:"reason"`
}

// String returns for example `line 4: samples_per_s is "NaN", not positive and finite`.
func (r rejection) String() string {
	switch {
	case r.Step > 0:
		return fmt.Sprintf("step %d: %s", r.Step, r.Reason)
	case r.Generation > 0:
		return fmt.Sprintf("generation %d: %s", r.Generation, r.Reason)
	}
	return fmt.Sprintf("line %d: %s", r.Line, r.Reason)
}

// report prints the tables of a result for people, and what was left out of it.
func (a *app) report(parts []table, left []rejection) error {
	for i, t := range parts {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if err := t.write(a.stdout, a.format == asWide); err != nil {
			return err
		}
	}
	if len(left) == 0 {
		return nil
	}
	text := "\nrejected:\n"
	for _, r := range left {
		text += "  " + r.String() + "\n"
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}

// tooFew says of a fit that failed for want of measurements which were rejected.
func tooFew(err error, list []rejection) error {
	const few = 5
	if len(list) == 0 {
		return err
	}
	said := make([]string, 0, few+1)
	for _, r := range list[:min(few, len(list))] {
		said = append(said, r.String())
	}
	if more := len(list) - few; more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w; %d rejected: %s", err, len(list), strings.Join(said, ", "))
}

// fitInput is what FILE of a fit means.
type fitInput struct {
	records []telemetry.Record
	asked   asked // what the job's folder says of it; zero if the file has none around it
	table   *os.File
}

// openFitInput finds and reads FILE: a job, a folder or file of telemetry, or a
// table, which is then open.
func openFitInput(op, name string) (fitInput, error) {
	path, err := fitPath(op, name)
	if err != nil {
		return fitInput{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return fitInput{}, failure.E(op, name, "", withoutPath(err), "give the name of a job, its folder, or a file")
	}
	var in fitInput
	if !isTelemetry(f) {
		in.table = f
		return in, nil
	}
	defer f.Close()
	if in.records, err = telemetry.Read(f); err != nil {
		return in, failure.E(op, path, failure.Corrupt, err, "")
	}
	in.asked = readAskedIn(&rundir.Dir{Path: filepath.Dir(path)})
	return in, nil
}

// fitPath returns the file that a name means. A job comes before a folder of its name.
func fitPath(op, name string) (string, error) {
	if jobname.Valid(name) {
		if d, err := rundir.Open("", name); err == nil {
			return d.Telemetry(), nil
		}
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", unknown(op, "no job and no file", name)
	case err == nil && info.IsDir():
		return (&rundir.Dir{Path: name}).Telemetry(), nil
	}
	return name, nil
}

// isTelemetry reports whether a file holds JSON, and leaves it at its start.
func isTelemetry(f *os.File) bool {
	first, err := bufio.NewReaderSize(f, 512).Peek(1)
	_, seek := f.Seek(0, io.SeekStart)
	return err == nil && seek == nil && first[0] == '{'
}

// withoutPath is an error of the file system without the path, which is said before it.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// interval is a predicted value that lies between Low and High in nine cases of ten.
type interval struct {
	Low  spec.Number `json:"low"`
	High spec.Number `json:"high"`
}

// normal is the interval of a value with a standard error.
func normal(value, stderr float64) interval {
	const normal90 = 1.645
	return interval{Low: spec.Number(max(0, value-normal90*stderr)), High: spec.Number(value + normal90*stderr)}
}

// needsMore is the failure for a fit that has too few measurements.
func needsMore(op, name string, err error, list []rejection) error {
	kind := failure.Corrupt
	if _, ok := errors.AsType[*estimate.RankError](err); !ok && !errors.Is(err, estimate.ErrTooFewPoints) {
		kind = failure.Internal
	}
	return failure.E(op, name, kind, tooFew(err, list), "")
}
