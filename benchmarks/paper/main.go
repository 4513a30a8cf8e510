// Command paper regenerates the tables and figures of the Optimus, ring and Pollux papers.
//
//	go run ./benchmarks/paper optimus --out DIR
//
// For each figure it writes a CSV file and a plot into DIR, and prints what the paper has, what we have and the
// difference. Package reproduce says how.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"optimus/benchmarks/paper/reproduce"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "paper:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	flags := flag.NewFlagSet("paper optimus|ring|pollux", flag.ContinueOnError)
	out := flags.String("out", "", "folder for CSV files and plots; without it they are not written")
	data := flags.String("data", "../shared/data", "folder with the measured speeds, traces and Pollux data")
	seeds := flags.Int("seeds", 20, "workloads drawn for each simulated figure")
	if len(args) == 0 {
		flags.Usage()
		return fmt.Errorf("name a paper, one of %q", reproduce.Papers())
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("one paper at a time: %q is left over", flags.Args())
	}
	return reproduce.Run(ctx, reproduce.Options{Paper: args[0], Out: *out, Data: os.DirFS(*data), Seeds: *seeds}, os.Stdout)
}
