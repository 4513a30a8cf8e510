package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// report is all that was measured.
type report struct {
	Machine   host          `json:"machine"`
	Gemm      *products     `json:"gemm,omitempty"`
	Conv      *convolutions `json:"conv,omitempty"`
	Models    []model       `json:"models,omitempty"`
	Scheduler *decisions    `json:"scheduler,omitempty"`
	// Rows are the figures of all parts in one form.
	Rows []row `json:"rows"`
}

// row is one figure. A ratio above 1 means that ours is better.
type row struct {
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Ours     float64 `json:"ours"`
	Peer     float64 `json:"peer,omitempty"`
	PeerName string  `json:"peer_name,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
}

func (r *report) empty() bool {
	return r.Gemm == nil && r.Conv == nil && len(r.Models) == 0 && r.Scheduler == nil
}

// rows collects the figures of all parts.
func (r *report) rows() []row {
	rows := []row{}
	add := func(what, unit string, ours, peer float64, name string, ratio float64) {
		if peer == 0 {
			name, ratio = "", 0
		}
		rows = append(rows, row{what, unit, ours, peer, name, ratio})
	}
	if g := r.Gemm; g != nil {
		for _, q := range g.Results {
			add("gemm "+q.Shape, "GFLOP/s", q.Ours, q.Peer, g.Peer, q.Ratio)
		}
	}
	if c := r.Conv; c != nil {
		for _, q := range c.Results {
			add(fmt.Sprintf("conv %s %s", q.Layer, q.Direction), "ms", q.Ours, q.Peer, c.Peer, q.Ratio)
		}
	}
	for _, m := range r.Models {
		peer, name := 0.0, ""
		if m.PyTorch != nil {
			peer, name = m.PyTorch.Examples, m.Setup.String()
		}
		add(fmt.Sprintf("model %s, batch %d, threads %d", m.Workload, m.Batch, m.Threads), "examples/s", m.Ours.Examples, peer, name, m.Ratio)
	}
	if d := r.Scheduler; d != nil {
		for _, q := range d.Optimus {
			add(fmt.Sprintf("scheduler optimus, %d jobs on %d nodes", q.Jobs, q.Nodes), "s", q.Seconds, q.Paper, fig12Peer, q.Ratio)
		}
		add("scheduler optimus, growth", "power of n log n", d.Growth, 1, "n log n", 1/d.Growth)
		for _, q := range d.Pollux {
			add(fmt.Sprintf("scheduler pollux, %d jobs on %d nodes of 4 GPUs", q.Jobs, q.Nodes), "s", q.Seconds, q.Paper, polluxPeer, q.Ratio)
		}
	}
	return rows
}

// print writes the report as tables or as JSON.
func (r *report) print(w io.Writer, format string) error {
	if format == "json" {
		r.Rows = r.rows()
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	var text strings.Builder
	m := r.Machine
	fmt.Fprintf(&text, "%s, %d cores, %s, %s %s, %s, load %.1f to %.1f\n", m.Processor, m.Cores, m.Level, m.Go, m.System, m.Time.Format("2006-01-02 15:04"), m.LoadBefore, m.LoadAfter)
	if r.Gemm != nil {
		r.Gemm.write(&text)
	}
	if r.Conv != nil {
		r.Conv.write(&text)
	}
	if len(r.Models) > 0 {
		writeModels(&text, r.Models)
	}
	if r.Scheduler != nil {
		r.Scheduler.write(&text)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// table aligns rows under a title; a row is a line of cells.
func table(w io.Writer, title string, header []string, rows [][]string) {
	fmt.Fprintf(w, "\n%s\n", title)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush() // into memory
}

// number writes x, or nothing where there is none.
func number(x float64, decimals int) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", decimals, x)
}

func percent(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*x)
}

// versus is the peer, or why there is none.
func versus(peer, absent string) string {
	if absent != "" {
		return "without comparison: " + absent
	}
	return "against " + peer
}

func (p *products) write(w io.Writer) {
	var rows [][]string
	for _, q := range p.Results {
		rows = append(rows, []string{q.Shape, number(q.Ours, 0), number(q.Packed, 0), number(q.Peer, 0), number(q.Ratio, 2), percent(q.Share)})
	}
	table(w, "Matrix products, one thread, CPU time, GFLOP/s, "+versus(p.Peer, p.Absent),
		[]string{"m × n × k", "ours", "packed", "OpenBLAS", "ratio", "of peak"}, rows)
}

func (c *convolutions) write(w io.Writer) {
	var rows [][]string
	for _, q := range c.Results {
		rows = append(rows, []string{q.Layer, fmt.Sprint(q.Count), q.Direction, number(q.Ours, 2), number(q.Peer, 2), number(q.Ratio, 2), number(q.GFLOPS, 0), percent(q.Share)})
	}
	rows = append(rows, []string{"all", "", "", number(c.Total.Ours, 0), number(c.Total.Peer, 0), number(c.Total.Ratio, 2), "", ""})
	table(w, fmt.Sprintf("Convolutions of ResNet-50, batch %d, one thread, CPU time, ms, %s", c.Batch, versus(c.Peer, c.Absent)),
		[]string{"layer", "times", "direction", "ours", "oneDNN", "ratio", "GFLOP/s", "of peak"}, rows)
}

func writeModels(w io.Writer, models []model) {
	var rows [][]string
	var notes []string
	note := func(text string) {
		for _, n := range notes {
			if n == text {
				return
			}
		}
		notes = append(notes, text)
	}
	for _, m := range models {
		row := []string{m.Workload, fmt.Sprint(m.Batch), fmt.Sprint(m.Threads), m.Clock, number(m.Ours.Milliseconds, 1), number(m.Ours.Examples, 1)}
		their, variant := speed{}, ""
		if m.PyTorch != nil {
			their, variant = *m.PyTorch, m.Setup.Variant
			note("Against " + m.Setup.String() + ".")
		} else {
			note("Without comparison: " + m.Absent + ".")
		}
		if m.Doubt != "" {
			variant = strings.TrimSpace(variant + " *")
			note("* Not to be trusted: " + m.Doubt + ".")
		}
		rows = append(rows, append(row, number(their.Milliseconds, 1), number(their.Examples, 1), number(m.Ratio, 2), number(m.GFLOPS, 1), percent(m.Share),
			fmt.Sprintf("%.0f", m.Allocations), mib(m.Memory.Counted()), mib(m.Memory.Heap), variant))
	}
	table(w, "Training steps", []string{"model", "batch", "threads", "clock", "ms", "examples/s", "PyTorch ms", "examples/s", "ratio", "GFLOP/s", "of peak", "allocations", "arrays MiB", "heap MiB", "PyTorch's variant"}, rows)
	for _, n := range notes {
		fmt.Fprintln(w, n)
	}
}

func mib(bytes int64) string { return fmt.Sprintf("%.0f", float64(bytes)/(1<<20)) }
