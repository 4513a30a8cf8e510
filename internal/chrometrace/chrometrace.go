// Package chrometrace writes timelines in the Trace Event Format of Chrome, which
// https://ui.perfetto.dev and chrome://tracing open: processes that hold threads, spans
// on the threads, and counters drawn as areas.
//
// The spans of one thread must not overlap; [Lanes] deals overlapping ones to several
// threads. Times are in seconds; the format counts microseconds.
package chrometrace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
)

// Trace is a timeline.
type Trace struct {
	Processes []Process
}

// Process is a group of threads and counters under one heading.
type Process struct {
	Name     string
	Threads  []Thread
	Counters []Counter
}

// Thread is one line of the drawing.
type Thread struct {
	Name  string
	Spans []Span // in order of Start, none begins before the one before it ended
}

// Span is something that lasts.
type Span struct {
	Name       string
	Start, End float64           // seconds
	Args       map[string]string // shown when it is chosen
}

// Counter is a set of values over time that are drawn on top of one another.
type Counter struct {
	Name    string
	Samples []Sample
}

// Sample holds from its time to that of the next.
type Sample struct {
	At     float64 // seconds
	Values map[string]float64
}

// event is one of the format's; the fields that a kind does not have are left out.
type event struct {
	Name     string   `json:"name"`
	Phase    string   `json:"ph"` // X: a span, C: a counter, M: metadata
	Time     float64  `json:"ts"`
	Duration *float64 `json:"dur,omitempty"`
	Process  int      `json:"pid"`
	Thread   int      `json:"tid"`
	Args     any      `json:"args,omitempty"`
}

const microseconds = 1e6

// Write writes the trace as JSON. Equal traces give equal bytes.
func (t Trace) Write(w io.Writer) error {
	out := &writer{w: bufio.NewWriter(w)}
	out.text(`{"displayTimeUnit":"ms","traceEvents":[`)
	for i, p := range t.Processes {
		out.process(i+1, p)
	}
	out.text("\n]}\n")
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// writer keeps the first error.
type writer struct {
	w    *bufio.Writer
	some bool // an event has been written
	err  error
}

func (w *writer) text(s string) {
	if w.err == nil {
		_, w.err = w.w.WriteString(s)
	}
}

func (w *writer) event(e event) {
	line, err := json.Marshal(e)
	if err != nil && w.err == nil {
		w.err = err
	}
	if w.some {
		w.text(",")
	}
	w.some = true
	w.text("\n" + string(line))
}

func (w *writer) process(id int, p Process) {
	type named struct {
		Name string `json:"name"`
	}
	type sorted struct {
		Index int `json:"sort_index"`
	}
	w.event(event{Name: "process_name", Phase: "M", Process: id, Args: named{p.Name}})
	w.event(event{Name: "process_sort_index", Phase: "M", Process: id, Args: sorted{id}})
	for _, c := range p.Counters {
		for _, s := range c.Samples {
			w.event(event{Name: c.Name, Phase: "C", Time: s.At * microseconds, Process: id, Args: s.Values})
		}
	}
	for k, t := range p.Threads {
		thread := k + 1
		w.event(event{Name: "thread_name", Phase: "M", Process: id, Thread: thread, Args: named{t.Name}})
		w.event(event{Name: "thread_sort_index", Phase: "M", Process: id, Thread: thread, Args: sorted{thread}})
		for _, s := range t.Spans {
			length := (s.End - s.Start) * microseconds
			e := event{Name: s.Name, Phase: "X", Time: s.Start * microseconds, Duration: &length, Process: id, Thread: thread}
			if len(s.Args) > 0 {
				e.Args = s.Args
			}
			w.event(e)
		}
	}
}

// Lanes deals spans that may overlap to the fewest lists whose spans do not. Each span
// goes to the first list that is free.
func Lanes(spans []Span) [][]Span {
	sorted := slices.Clone(spans)
	slices.SortStableFunc(sorted, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	var lanes [][]Span
	for _, s := range sorted {
		i := slices.IndexFunc(lanes, func(l []Span) bool { return l[len(l)-1].End <= s.Start })
		if i < 0 {
			i, lanes = len(lanes), append(lanes, nil)
		}
		lanes[i] = append(lanes[i], s)
	}
	return lanes
}
