package data

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"optimus/data/source"
)

const (
	opSubmission    = "read submission"
	doSubmission    = "write a line `image,CLASS,CLASS,…`, then a line of the picture's name and a probability per class for each picture"
	submissionLimit = 1 << 30 // bytes; the form of NDSB1 has 240 MB
	submissionWidth = 1 << 16 // classes
)

// Submission is what a competition of Kaggle wants: of each picture, how probable
// each class is.
type Submission struct {
	Classes []string
	Images  []string
	// Probabilities has a row for each image and a column for each class, row-major.
	Probabilities []float32
}

// ReadSubmission reads a comma-separated file such as NDSB1's sampleSubmission.csv:
// a line `image,CLASS,CLASS,…`, then one for each picture, each number from 0 to 1. No
// class and no picture may come twice. Rows need not add up to 1: the competition
// scaled them.
func ReadSubmission(path string) (*Submission, error) {
	tree, err := openTree(context.Background(), opSubmission, path)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	return readSubmission(tree.Root())
}

func readSubmission(path source.Path) (s *Submission, err error) {
	err = withSubmission(path, func(p *submissionParser) error {
		s = &p.Submission
		if err := p.head(); err != nil {
			return err
		}
		return p.rows()
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// submissionClasses reads the first line alone.
func submissionClasses(path source.Path) (classes []string, err error) {
	err = withSubmission(path, func(p *submissionParser) error {
		err := p.head()
		classes = p.Classes
		return err
	})
	return classes, err
}

func withSubmission(path source.Path, read func(*submissionParser) error) error {
	return withFile(opSubmission, path, submissionLimit, doSubmission, func(f fileReader, size int64) error {
		return read(newSubmissionParser(path.String(), io.LimitReader(f, size)))
	})
}

// submissionParser reads a submission line by line.
type submissionParser struct {
	Submission
	path  string
	lines *csv.Reader
}

func newSubmissionParser(path string, r io.Reader) *submissionParser {
	p := &submissionParser{path: path, lines: csv.NewReader(r)}
	p.lines.ReuseRecord = true
	return p
}

func (p *submissionParser) fail(kind Kind, format string, args ...any) error {
	return &Error{Op: opSubmission, Path: p.path, Kind: kind, Detail: fmt.Sprintf(format, args...), Do: doSubmission}
}

// next returns the fields of the next line, nil behind the last.
func (p *submissionParser) next() ([]string, error) {
	row, err := p.lines.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, p.fail(BadFormat, "%v", err)
	}
	return row, nil
}

// head reads the classes.
func (p *submissionParser) head() error {
	row, err := p.next()
	if err != nil {
		return err
	}
	if len(row) < 2 || len(row) > submissionWidth || strings.TrimPrefix(row[0], "\ufeff") != "image" {
		return p.fail(BadFormat, "line 1 has %d columns, want `image` and the classes", len(row))
	}
	seen := map[string]bool{"": true}
	for _, class := range row[1:] {
		if seen[class] {
			return p.fail(BadFormat, "line 1 has the class %.40q twice, or without a name", class)
		}
		seen[class] = true
		p.Classes = append(p.Classes, class)
	}
	return nil
}

// rows reads the pictures.
func (p *submissionParser) rows() error {
	seen := map[string]bool{"": true}
	for n := 2; ; n++ {
		row, err := p.next()
		switch {
		case err != nil:
			return err
		case row == nil && n == 2:
			return p.fail(Empty, "there is no picture in it")
		case row == nil:
			return nil
		}
		name := strings.Clone(row[0]) // not to hold on to the line
		if seen[name] {
			return p.fail(BadFormat, "line %d has the picture %.40q once more, or without a name", n, name)
		}
		seen[name] = true
		p.Images = append(p.Images, name)
		for i, text := range row[1:] {
			v, err := strconv.ParseFloat(text, 32)
			if err != nil || !(v >= 0 && v <= 1) {
				return p.fail(BadFormat, "line %d, class %.40q: %.40q, want a number from 0 to 1", n, p.Classes[i], text)
			}
			p.Probabilities = append(p.Probabilities, float32(v))
		}
	}
}

// Write writes the submission as [ReadSubmission] reads it.
func (s *Submission) Write(w io.Writer) error {
	out := csv.NewWriter(w)
	row := append([]string{"image"}, s.Classes...)
	if err := out.Write(row); err != nil {
		return err
	}
	for i, name := range s.Images {
		row = append(row[:0], name)
		for _, p := range s.Probabilities[i*len(s.Classes):][:len(s.Classes)] {
			row = append(row, strconv.FormatFloat(float64(p), 'g', -1, 32))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
