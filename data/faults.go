package data

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"optimus/data/source"
)

// faults are what is wrong with the files of a set. A reader tells each and goes on
// as long as tell returns nil: it then leaves the example out. A store that does not
// answer is not a fault of a file, and always ends the reading. The zero value is
// strict, the first fault ends the reading.
type faults struct {
	op    string
	limit int // examples that may be left out; unlimited to list all that is wrong
	list  []error
	ctx   context.Context // ends a long reading; may be nil
}

const unlimited = math.MaxInt

// verifies reports whether every example must be read at the opening: else it is
// not known which are left out.
func (f *faults) verifies() bool { return f.limit > 0 }

// tell notes a fault of one example. It returns the error to end with, if there are
// more than the limit.
func (f *faults) tell(err error) error {
	if err == nil {
		return nil
	}
	if f.limit == 0 || source.IsFault(err) {
		return err
	}
	if f.list = append(f.list, err); len(f.list) <= f.limit {
		return nil
	}
	names := make([]string, len(f.list))
	for i, err := range f.list {
		names[i] = fmt.Sprintf("%s (%s)", filepath.Base(pathOf(err)), KindOf(err))
	}
	return &Error{Op: f.op, Path: pathOf(f.list[0]), Kind: KindOf(f.list[0]), Err: errors.Join(f.list...),
		Detail: fmt.Sprintf("this and others cannot be used, and at most %d may be left out: %s", f.limit, strings.Join(names, ", ")),
		Do:     "fetch the files again, or allow more to be left out"}
}

// tellAll tells several.
func (f *faults) tellAll(errs []error) error {
	for _, err := range errs {
		if err := f.tell(err); err != nil {
			return err
		}
	}
	return nil
}

// need notes a fault of a file that the set cannot do without. It returns nil only
// where all that is wrong is to be listed.
func (f *faults) need(err error) error {
	if err != nil && f.limit == unlimited && !source.IsFault(err) {
		f.list = append(f.list, err)
		return nil
	}
	return err
}

// errListed ends a reading whose faults are in the list.
var errListed = errors.New("files are bad")

// whole returns an error if a file that the set cannot do without was bad.
func (f *faults) whole() error {
	if len(f.list) > 0 {
		return errListed
	}
	return nil
}

// verify reads n examples, by width goroutines, and keeps those that can be. It ends
// early with the context, or when too many cannot.
func (f *faults) verify(width, n int, read func(i int) error, keep func(i int)) error {
	wrong := make([]error, n)
	err := inParallel(width, n, func(i int) error {
		wrong[i] = read(i)
		if source.IsFault(wrong[i]) {
			return wrong[i]
		}
		if f.ctx != nil {
			return context.Cause(f.ctx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, err := range wrong {
		if err == nil {
			keep(i)
		} else if err := f.tell(err); err != nil {
			return err
		}
	}
	return nil
}

// pathOf returns the file that an *Error in err's chain is about.
func pathOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Path
	}
	return ""
}

// checkSkip refuses a limit that is none.
func checkSkip(op string, skip int) error {
	if skip >= 0 {
		return nil
	}
	return &Error{Op: op, Kind: BadOption, Detail: fmt.Sprintf("%d examples to leave out", skip), Do: "give 0 or more"}
}
