// Package reproduce regenerates the tables and figures of three papers: Optimus (EuroSys 2018), the dynamic scheduling
// of ring all-reduce jobs (arXiv 1908.08082) and Pollux (OSDI 2021).
//
// A figure is a list of rows: what the paper has, what we have, the difference. What comes from drawn workloads is a
// mean over seeds with its 95 % interval; the jobs' truth is measured tables (packages scheduler/sim/optimus and
// scheduler/sim/pollux), so a ratio differs from the paper's where their machines do. What cannot be regenerated is
// listed with the reason.
package reproduce

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Options says what to regenerate.
type Options struct {
	Paper string // one of Papers
	Out   string // folder for CSV files and plots, made if it is not there; "" writes none
	Data  fs.FS  // the measured data: speed/, traces/, pollux/
	Seeds int    // workloads drawn for each simulated figure; 0 is 20
}

// Papers returns the papers' names.
func Papers() []string { return []string{"optimus", "ring", "pollux"} }

// Run regenerates everything of one paper and prints it to w as it goes.
func Run(ctx context.Context, o Options, w io.Writer) error {
	if o.Seeds == 0 {
		o.Seeds = 20
	}
	if o.Seeds < 2 {
		return fmt.Errorf("reproduce: %d seed; an interval needs at least 2", o.Seeds)
	}
	if o.Out != "" {
		if err := os.MkdirAll(o.Out, 0o755); err != nil {
			return fmt.Errorf("reproduce: %w", err)
		}
	}
	r := &report{Options: o, ctx: ctx, w: w}
	var err error
	switch o.Paper {
	case "optimus":
		err = r.optimus()
	case "ring":
		err = r.ring()
	case "pollux":
		err = r.pollux()
	default:
		return fmt.Errorf("reproduce: there is no paper %q; choose one of %q", o.Paper, Papers())
	}
	if err != nil {
		return fmt.Errorf("reproduce %s: %w", o.Paper, err)
	}
	return nil
}

// report is one run.
type report struct {
	Options
	ctx context.Context
	w   io.Writer
}

// figure is a table or figure of a paper.
type figure struct {
	name  string // for files, such as "fig11"
	title string
	rows  []row
	plot  func(path string) error // nil for none
}

// row is one number.
type row struct {
	what  string
	paper float64 // NaN if the paper does not have it
	ours  float64
	plus  float64 // half of the 95 % interval; 0 if it is not drawn
}

// none stands for a number that the paper does not have.
var none = math.NaN()

func (f *figure) add(what string, paper, ours float64) {
	f.rows = append(f.rows, row{what: what, paper: paper, ours: ours})
}

// mean adds the mean of values, one for each seed.
func (f *figure) mean(what string, paper float64, values []float64) {
	m, plus := interval(values)
	f.rows = append(f.rows, row{what, paper, m, plus})
}

// interval returns the mean and half of its 95 % interval by Student's t.
func interval(values []float64) (mean, plus float64) {
	mean, sd := stat.MeanStdDev(values, nil)
	n := float64(len(values))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(.975)
	return mean, t * sd / math.Sqrt(n)
}

// show prints a figure and writes its files.
func (r *report) show(f figure) error {
	width := 0
	for _, l := range f.rows {
		width = max(width, len([]rune(l.what)))
	}
	fmt.Fprintf(r.w, "\n%s\n", f.title)
	for _, l := range f.rows {
		ours := number(l.ours)
		if l.plus > 0 {
			ours += " ± " + number(l.plus)
		}
		difference := ""
		if !math.IsNaN(l.paper) && l.paper != 0 {
			difference = fmt.Sprintf("%+.0f %%", 100*(l.ours/l.paper-1))
		}
		fmt.Fprintf(r.w, "  %-*s  paper %-10s ours %-20s %s\n", width, l.what, number(l.paper), ours, difference)
	}
	if r.Out == "" {
		return nil
	}
	if err := writeCSV(filepath.Join(r.Out, f.name+".csv"), f.rows); err != nil {
		return err
	}
	if f.plot != nil {
		return f.plot(filepath.Join(r.Out, f.name+".svg"))
	}
	return nil
}

// say prints a remark below a figure.
func (r *report) say(format string, args ...any) { fmt.Fprintf(r.w, "  "+format+"\n", args...) }

func number(x float64) string {
	switch {
	case math.IsNaN(x):
		return "–"
	case math.Abs(x) >= 1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

func writeCSV(path string, rows []row) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	records := [][]string{{"what", "paper", "ours", "plus_minus_95", "ours_over_paper"}}
	for _, l := range rows {
		f := func(x float64) string {
			if math.IsNaN(x) {
				return ""
			}
			return strconv.FormatFloat(x, 'g', 6, 64)
		}
		ratio := l.ours / l.paper
		if l.paper == 0 {
			ratio = math.NaN()
		}
		records = append(records, []string{l.what, f(l.paper), f(l.ours), f(l.plus), f(ratio)})
	}
	return firstError(w.WriteAll(records), file.Close())
}

func firstError(errs ...error) error {
	if i := slices.IndexFunc(errs, func(e error) bool { return e != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// cannot lists what is not regenerated, and why.
func (r *report) cannot(what [][2]string) {
	fmt.Fprintln(r.w, "\nNot regenerated")
	for _, c := range what {
		fmt.Fprintf(r.w, "  %s: %s\n", c[0], c[1])
	}
}
