// Command gemmbench prints how package sgemm compares with OpenBLAS on one
// thread; see package gemm.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"text/tabwriter"

	"optimus/benchmarks/gemm"
)

func main() {
	var o gemm.Options
	flag.IntVar(&o.Rounds, "rounds", 9, "turns of each contestant")
	flag.DurationVar(&o.Slice, "slice", 0, "length of a turn (default 10ms)")
	flag.StringVar(&o.Level, "level", "", "plain, avx2 or avx512 (default: the process's level)")
	flag.StringVar(&o.Core, "core", "", "OpenBLAS's kernels, such as SkylakeX or Haswell (default: its choice, if it knows the processor)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "gemmbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o gemm.Options) error {
	rep, err := gemm.Run(ctx, o)
	if err != nil {
		return err
	}
	if rep.Absent != nil {
		fmt.Printf("Without OpenBLAS: %v\n", rep.Absent)
	} else {
		fmt.Printf("sgemm at level %s against %s, one thread, GFLOP/s\n", rep.Level, rep.OpenBLAS)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "m × n × k\tours\tpacked B\tOpenBLAS\tratio\tpeak\tof peak\t")
	for _, r := range rep.Results {
		fmt.Fprintf(w, "%v\t%.1f\t%.1f\t%.1f\t%.2f\t%.1f\t%.0f %%\t\n", r.Shape, r.Ours, r.Packed, r.OpenBLAS, r.Ratio, r.Peak, 100*r.Share)
	}
	return w.Flush()
}
