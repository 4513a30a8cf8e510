package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// FieldError says what is wrong in a trace, and where.
type FieldError struct {
	File    string
	Line    int    // from 1; 0 if it is not about a line
	Field   string // column or key; "" if it is not about a field
	Problem string
}

func (e *FieldError) Error() string {
	s := "trace: " + e.File
	if e.Line > 0 {
		s += fmt.Sprintf(": line %d", e.Line)
	}
	if e.Field != "" {
		s += fmt.Sprintf(": field %q", e.Field)
	}
	return s + ": " + e.Problem
}

// rows reads a CSV file whose first line names the columns. The first error ends it: then next returns false, fields
// read as zero, and err says what is wrong.
type rows struct {
	file   string
	csv    *csv.Reader
	column map[string]int
	fields []string
	line   int
	err    error
}

// newRows reads the header. All columns of need must be there; others may.
func newRows(file string, r io.Reader, need ...string) *rows {
	t := &rows{file: file, csv: csv.NewReader(r), column: map[string]int{}}
	t.csv.ReuseRecord = true
	if !t.read() {
		if t.err == nil {
			t.err = &FieldError{File: file, Problem: "the file is empty; its first line must name the columns"}
		}
		return t
	}
	for i, name := range t.fields {
		name = strings.Clone(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if _, twice := t.column[name]; twice {
			t.fail(name, "the column is there twice")
			return t
		}
		t.column[name] = i
	}
	for _, name := range need {
		if !t.has(name) {
			t.fail(name, "the column is missing")
			return t
		}
	}
	return t
}

func (t *rows) has(column string) bool {
	_, ok := t.column[column]
	return ok
}

// next goes to the next line; false at the end and after an error.
func (t *rows) next() bool { return t.err == nil && t.read() }

func (t *rows) read() bool {
	var err error
	t.fields, err = t.csv.Read()
	switch {
	case err == nil:
		t.line, _ = t.csv.FieldPos(0)
		return true
	case err != io.EOF:
		e := &FieldError{File: t.file, Problem: err.Error()}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			e.Line, e.Problem = parse.Line, parse.Err.Error()
		}
		t.err = e
	}
	return false
}

// fail notes the first error about a field of this line.
func (t *rows) fail(field, problem string, args ...any) {
	if t.err == nil {
		t.err = &FieldError{File: t.file, Line: t.line, Field: field, Problem: fmt.Sprintf(problem, args...)}
	}
}

// text returns a field; it must not be empty.
func (t *rows) text(column string) string {
	s := t.raw(column)
	if s == "" {
		t.fail(column, "it is empty")
	}
	return s
}

func (t *rows) raw(column string) string {
	if t.err != nil {
		return ""
	}
	return strings.Clone(strings.TrimSpace(t.fields[t.column[column]]))
}

// number returns a field that is a finite number ≥ least.
func (t *rows) number(column string, least float64) float64 {
	s := t.text(column)
	if t.err != nil {
		return 0
	}
	x, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsInf(x, 0) || math.IsNaN(x):
		t.fail(column, "%q is not a finite number", s)
		return 0
	case x < least:
		t.fail(column, "it is %v, but must be at least %v", x, least)
		return 0
	}
	return x
}

// count returns a field that is a whole number ≥ least and fits 32 bits.
func (t *rows) count(column string, least int) int {
	s := t.text(column)
	if t.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 32)
	switch {
	case err != nil:
		t.fail(column, "%q is not a whole number below 2³¹", s)
		return 0
	case int(n) < least:
		t.fail(column, "it is %d, but must be at least %d", n, least)
		return 0
	}
	return int(n)
}
