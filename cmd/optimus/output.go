package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	"optimus/spec"
)

// format is the value of -o. The zero value is a table.
type format string

const (
	asTable format = "table"
	asWide  format = "wide"
	asJSON  format = "json"
	asYAML  format = "yaml"
	asName  format = "name"
)

func formats() []string {
	return []string{string(asTable), string(asWide), string(asJSON), string(asYAML), string(asName)}
}

func formatList() string { return strings.Join(formats(), "|") }

// String, Set and Type make a format a flag value.
func (f *format) String() string {
	if *f == "" {
		return string(asTable)
	}
	return string(*f)
}

// Set takes one of the formats.
func (f *format) Set(s string) error {
	if !slices.Contains(formats(), s) {
		return errors.New(formatList())
	}
	*f = format(s)
	return nil
}

// Type names the value in help texts.
func (f *format) Type() string { return formatType }

const formatType = "FORMAT"

// table is the form of a result for people. Column names that start with '+'
// appear only with -o wide.
type table struct {
	columns []string
	rows    [][]string
	name    int // the column that -o name prints
}

// forPeople reports whether results are tables.
func (a *app) forPeople() bool { return a.format == "" || a.format == asTable || a.format == asWide }

// print writes a result to standard output: value with -o json and yaml, t
// otherwise.
func (a *app) print(value any, t table) error {
	switch a.format {
	case asJSON:
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(value)
	case asYAML:
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = a.stdout.Write(text)
		return err
	case asName:
		for _, row := range t.rows {
			if _, err := fmt.Fprintln(a.stdout, row[t.name]); err != nil {
				return err
			}
		}
		return nil
	}
	return t.write(a.stdout, a.format == asWide)
}

// write aligns the columns, without spaces at line ends.
func (t table) write(w io.Writer, wide bool) error {
	var text strings.Builder
	tab := tabwriter.NewWriter(&text, 0, 8, 2, ' ', 0)
	line := func(cells []string) {
		shown := make([]string, 0, len(cells))
		for i, cell := range cells {
			if wide || !strings.HasPrefix(t.columns[i], "+") {
				shown = append(shown, cell)
			}
		}
		fmt.Fprintln(tab, strings.Join(shown, "\t"))
	}
	header := make([]string, len(t.columns))
	for i, name := range t.columns {
		header[i] = strings.TrimPrefix(name, "+")
	}
	line(header)
	for _, row := range t.rows {
		line(row)
	}
	tab.Flush() // into memory
	for l := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(l, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// humanBytes writes a size for people.
func humanBytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 {
		f /= 1024
		i++
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

// humanCount writes a number of things for people.
func humanCount(n int) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f G", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.2f M", float64(n)/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// humanPercent writes a part for people.
func humanPercent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// humanAge writes how long ago something was, for people: by its two largest
// units, the smaller one only where it still counts.
func humanAge(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 10*time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}

// humanETA writes the seconds that a job still needs, which may be more than a
// time.Duration holds.
func humanETA(seconds spec.Number) string {
	const most = 1e9 // some thirty years
	return humanAge(time.Duration(min(float64(seconds), most) * float64(time.Second)))
}
