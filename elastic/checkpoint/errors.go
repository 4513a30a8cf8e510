package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"optimus/internal/failure"
	"optimus/internal/safetensors"
)

// Fault says what is wrong with a checkpoint, for programs that must decide.
type Fault string

// The faults.
const (
	Corrupt    Fault = "corrupt"     // bytes differ from those written
	Missing    Fault = "missing"     // a file or folder is not there
	Truncated  Fault = "truncated"   // a file is shorter or longer than written
	Incomplete Fault = "incomplete"  // no manifest: the save did not finish
	None       Fault = "none"        // there is no checkpoint to load
	WrongModel Fault = "wrong-model" // it belongs to another model
	Version    Fault = "version"     // a newer program wrote it
	Invalid    Fault = "invalid"     // the caller's request makes no sense
	Full       Fault = "no-space"    // the disk is full
	IO         Fault = "io"          // the file system fails otherwise
)

// Error is every error of this package. Path is the file or folder; Tensor, if
// not empty, the place in it.
type Error struct {
	Fault  Fault
	Op     string
	Path   string
	Tensor string
	Err    error
	Do     string // what to do
}

// Error returns the failure as one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Path != "" {
		fmt.Fprintf(&b, " %s", e.Path)
	}
	if e.Tensor != "" {
		fmt.Fprintf(&b, ": tensor %q", e.Tensor)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Do != "" {
		fmt.Fprintf(&b, "; %s", e.Do)
	}
	return strings.ReplaceAll(b.String(), "\n", "; ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Kind is the fault's kind in the project's closed list (package failure).
func (e *Error) Kind() string {
	switch e.Fault {
	case Corrupt, Truncated:
		return string(failure.Corrupt)
	case Missing, Incomplete, None:
		return string(failure.NotFound)
	case WrongModel, Version, Invalid:
		return string(failure.InvalidArgument)
	case Full:
		return string(failure.NoSpace)
	}
	return string(failure.KindOf(e.Err))
}

// FaultOf is the fault of an error of this package, "" for others.
func FaultOf(err error) Fault {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fault
	}
	return ""
}

// What to do about a damaged checkpoint.
const useOther = "load another checkpoint of the job"

// fault makes an error about path.
func fault(f Fault, op, path, format string, args ...any) *Error {
	e := &Error{Fault: f, Op: op, Path: path, Err: fmt.Errorf(format, args...)}
	if f == Corrupt || f == Truncated || f == Missing || f == Incomplete {
		e.Do = useOther
	}
	return e
}

// ioFault makes an error from one of the file system, perhaps met while reading
// or writing a tensor.
func ioFault(op, path string, err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	e := tensorFault(IO, op, path, err)
	if p, ok := errors.AsType[*fs.PathError](err); ok && strings.TrimSuffix(p.Path, temporary) == path {
		e.Err = fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Fault, e.Do = Missing, "check the path"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Fault, e.Do = Full, "free space or keep fewer checkpoints; earlier ones are whole"
	}
	return e
}

// tensorFault makes an error from one of package safetensors, whose file it
// names already.
func tensorFault(f Fault, op, path string, err error) *Error {
	e := fault(f, op, path, "%w", err)
	if s, ok := errors.AsType[*safetensors.Error](err); ok {
		e.Tensor, e.Err = s.Tensor, s.Err
	}
	return e
}
