package data

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"optimus/data/source"
)

// Kind says what is wrong with a set. The list is closed; the words are part
// of the interface of the command line.
type Kind string

// The kinds of [Error].
const (
	NotFound   Kind = "not-found"  // a folder or file is missing
	Unreadable Kind = "unreadable" // the system refused to read or write it
	Truncated  Kind = "truncated"  // the file ends inside a record
	BadFormat  Kind = "bad-format" // the file is of another format or encoding
	BadLabel   Kind = "bad-label"  // a record's class is out of range
	Empty      Kind = "empty"      // there is no example in it
	TooLarge   Kind = "too-large"  // beyond what such a set can sensibly hold
	BadID      Kind = "bad-id"     // Fill was asked for an example that is not there
	BadOption  Kind = "bad-option" // an argument of the call itself is wrong
)

// Error is the error of everything in this package. It prints as one line.
type Error struct {
	Op     string // what was being done: "open MR"
	Path   string // the file or folder, "" where there is none
	Kind   Kind
	Detail string // what was found and what was wanted
	Do     string // what the user can do about it
	Err    error  // the cause below, if any
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Path != "" {
		b.WriteString(": " + printable(e.Path))
	}
	fmt.Fprintf(&b, ": %s: %s", e.Kind, e.Detail)
	if e.Do != "" {
		b.WriteString("; " + e.Do)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the *Error in err's chain, or "".
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// printable quotes a path only where it would break the line.
func printable(path string) string {
	if q := strconv.Quote(path); q[1:len(q)-1] != path && strings.ContainsFunc(path, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return q
	}
	return path
}

// systemError turns an error of the file system, or of a store, into an *Error.
func systemError(op, path string, err error, do string) *Error {
	e := &Error{Op: op, Path: path, Kind: Unreadable, Detail: err.Error(), Do: do, Err: err}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		e.Detail = pe.Err.Error()
	}
	if fault, ok := errors.AsType[*source.Fault](err); ok && fault.Do != "" {
		e.Do = fault.Do
	}
	if errors.Is(err, fs.ErrNotExist) {
		e.Kind, e.Detail = NotFound, "no such file or folder"
	}
	return e
}

func checkID(op string, id, n int) error {
	if id >= 0 && id < n {
		return nil
	}
	return &Error{Op: op, Kind: BadID, Detail: fmt.Sprintf("example %d is not in 0..%d", id, n-1),
		Do: "check that the job's number of examples is this set's"}
}
