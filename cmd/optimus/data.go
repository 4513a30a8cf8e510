package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"optimus/data"
	"optimus/internal/failure"
	"optimus/internal/suggest"
)

func dataCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "data",
		Short: "Check data sets and make generated ones",
		Long:  `Check the data sets that workloads train on, and write generated ones in the same formats.`,
	}
	c.AddCommand(dataCheckCommand(a), dataMakeCommand(a))
	return c
}

// checkedSet is the JSON form of what was found in a folder.
type checkedSet struct {
	Path     string     `json:"path"`
	Set      string     `json:"set"`
	Examples int        `json:"examples"`
	Train    int        `json:"train"`
	Valid    int        `json:"valid"`
	Classes  int        `json:"classes"`
	Words    int        `json:"words"`
	LeftOut  int        `json:"left_out"`
	Faults   []badInput `json:"faults"`
}

// badInput is one fault of a data set.
type badInput struct {
	File  string    `json:"file"`
	Kind  data.Kind `json:"kind"`
	Error string    `json:"error"`
	Do    string    `json:"do"`
}

func dataCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR",
		Short: "Read a data set whole and list all that is bad in it",
		Long: `Read a data set whole and list all that is bad in it.

Which set it is, the names of its files and folders say. Every picture and recording
is decoded, every checksum compared, every line read. The exit status is 1 if anything
is bad. DIR may also be a single file of a set, or a URL such as s3://bucket/folder.`,
		Example: "  optimus data check cifar-10-batches-bin\n  optimus data check imagenet -o name\n  optimus data check 's3://bucket/imagenet?region=eu-central-1'",
		RunE:    func(c *cobra.Command, args []string) error { return a.checkData(c.Context(), args[0]) },
	}
}

func (a *app) checkData(ctx context.Context, path string) error {
	const op = "data check"
	report, err := data.Check(ctx, path)
	if err != nil {
		return dataError(op, path, err)
	}
	found := describeSet(path, report)
	counts := table{
		columns: []string{"SET", "EXAMPLES", "TRAIN", "VALID", "CLASSES", "+WORDS", "LEFT-OUT", "BAD"},
		rows: [][]string{{found.Set, fmt.Sprint(found.Examples), fmt.Sprint(found.Train), fmt.Sprint(found.Valid),
			fmt.Sprint(found.Classes), fmt.Sprint(found.Words), fmt.Sprint(found.LeftOut), fmt.Sprint(len(found.Faults))}},
	}
	faults := table{columns: []string{"FILE", "KIND", "ERROR"}}
	for _, f := range found.Faults {
		faults.rows = append(faults.rows, []string{f.File, string(f.Kind), f.Error})
	}
	forPeople := a.format == "" || a.format == asTable || a.format == asWide
	if forPeople {
		if err := a.print(found, counts); err != nil {
			return err
		}
	}
	if !forPeople || len(faults.rows) > 0 {
		if err := a.print(found, faults); err != nil {
			return err
		}
	}
	if len(report.Faults) == 0 {
		return nil
	}
	first := report.Faults[0]
	return failure.E(op, path, failure.Corrupt, fmt.Errorf("faults: %d, the first %s: %s", len(report.Faults), first.Path, first.Detail), first.Do)
}

func describeSet(path string, r *data.Report) checkedSet {
	c := checkedSet{Path: path, Set: r.Format, Examples: r.Examples, Words: r.Words, Faults: []badInput{}}
	if s := r.Set; s != nil {
		c.Train, c.Valid, c.Classes, c.LeftOut = s.Train.Len(), s.Valid.Len(), len(s.Classes), s.LeftOut
	}
	for _, f := range r.Faults {
		c.Faults = append(c.Faults, badInput{f.Path, f.Kind, f.Detail, f.Do})
	}
	return c
}

// madeSet is the JSON form of a set that was written.
type madeSet struct {
	Set      string `json:"set"`
	Dir      string `json:"dir"`
	Examples int    `json:"examples"`
	Seed     uint64 `json:"seed"`
}

func dataMakeCommand(a *app) *cobra.Command {
	made := madeSet{}
	names := strings.Join(data.Formats(), ", ")
	c := &cobra.Command{
		Use:   "make NAME",
		Short: "Write a generated data set in the format of the original",
		Long: `Write a generated data set, with a structure that can be learned, in the format of
the original. NAME is one of
` + names + `.

DIR must be new or empty, and appears when all is written. The same number of examples
and seed make the same files.`,
		Example: "  optimus data make cifar10 --out cifar --examples 6000",
		RunE: func(c *cobra.Command, args []string) error {
			made.Set = args[0]
			if !slices.Contains(data.Formats(), made.Set) {
				return usageError(c, fmt.Errorf("unknown set %q", made.Set), suggest.Meant(made.Set, data.Formats()))
			}
			if made.Dir == "" {
				return usageError(c, errors.New("missing --out"), "")
			}
			if err := data.Make(c.Context(), made.Set, made.Dir, made.Examples, made.Seed); err != nil {
				return dataError("data make", made.Set, err)
			}
			return a.print(made, table{
				columns: []string{"SET", "EXAMPLES", "SEED", "DIR"},
				rows:    [][]string{{made.Set, fmt.Sprint(made.Examples), fmt.Sprint(made.Seed), made.Dir}},
				name:    3,
			})
		},
	}
	c.Flags().StringVar(&made.Dir, "out", "", "folder to write, new or empty")
	c.Flags().IntVar(&made.Examples, "examples", 1000, "examples to train and to validate on")
	c.Flags().Uint64Var(&made.Seed, "seed", 1, "seed of everything random")
	return c
}

// dataError gives an error of package data the form of the program's.
func dataError(op, subject string, err error) error {
	e, ok := errors.AsType[*data.Error](err)
	if !ok { // the context's: package data has no other errors
		return failure.E(op, subject, failure.Canceled, err, "")
	}
	kind := failure.KindOf(e.Err)
	switch e.Kind {
	case data.NotFound:
		kind = failure.NotFound
	case data.BadOption:
		kind = failure.InvalidArgument
	}
	if e.Path != "" {
		subject = e.Path
	}
	return failure.E(op, subject, kind, errors.New(e.Detail), e.Do)
}
