// Command convbench prints how package compute/cpu/conv compares with oneDNN on
// one thread, by default over the 53 convolutions of ResNet-50; see package benchmarks/conv.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
	"time"

	"optimus/benchmarks/conv"
)

func main() {
	var o conv.Options
	flag.IntVar(&o.Rounds, "rounds", 5, "turns of each side")
	flag.IntVar(&o.Batch, "batch", 8, "pictures")
	flag.DurationVar(&o.Slice, "slice", 0, "length of a turn (default 10ms)")
	only := flag.String("only", "", "measure only layers whose shape contains this")
	flag.StringVar(&o.Level, "level", "", "plain, avx2 or avx512 (default: the process's level)")
	others := flag.Bool("others", false, "measure groups and layers of other networks instead of ResNet-50")
	flag.Parse()
	layers := conv.ResNet50()
	if *others {
		layers = conv.Others()
	}
	for _, l := range layers {
		if strings.Contains(l.Shape.String(), *only) {
			o.Layers = append(o.Layers, l)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "convbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o conv.Options) error {
	rep, err := conv.Run(ctx, o)
	if err != nil {
		return err
	}
	if rep.Absent != nil {
		fmt.Printf("Without oneDNN: %v\n", rep.Absent)
	} else {
		fmt.Printf("convolutions at level %s against %s, batch %d, one thread, ms\n", rep.Level, rep.OneDNN, o.Batch)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "layer\ttimes\tdirection\tours\toneDNN\tratio\tof the best\tGFLOP/s\toneDNN's kernel")
	for _, r := range rep.Results {
		fmt.Fprintf(w, "%v\t%d\t%v\t%s\t%.0f\t%s\n", r.Layer.Shape, r.Layer.Count, r.Direction, columns(r.Ours, r.OneDNN), r.Rate, r.Peer)
	}
	total := func(name string, d ...conv.Direction) {
		ours, theirs := rep.Total(d...)
		fmt.Fprintf(w, "all\t\t%s\t%s\t\t\n", name, columns(ours, theirs))
	}
	for _, d := range []conv.Direction{conv.Forward, conv.BackwardData, conv.BackwardWeights} {
		total(d.String(), d)
	}
	total("all")
	return w.Flush()
}

// columns are both medians and both ratios.
func columns(ours, theirs conv.Times) string {
	median, best := ours.Ratio(theirs)
	return fmt.Sprintf("%.2f\t%.2f\t%.3f\t%.3f", ms(ours.Median), ms(theirs.Median), median, best)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
