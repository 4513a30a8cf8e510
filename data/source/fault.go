package source

import (
	"errors"
	"io/fs"
)

// Fault is an error of a store, and not of a file in it: it does not answer, refuses
// the credentials, or has another version of an object than before. Of a file nothing
// is known then, so no reader may take it for a bad one.
type Fault struct {
	Err error
	Do  string // what the user can do about it
}

func (f *Fault) Error() string { return f.Err.Error() }

func (f *Fault) Unwrap() error { return f.Err }

// IsFault reports whether there is a Fault in err's chain.
func IsFault(err error) bool {
	_, ok := errors.AsType[*Fault](err)
	return ok
}

// ErrNotRegular is wrapped by the error for opening what is neither a file nor a
// folder, such as a pipe.
var ErrNotRegular = errors.New("it is not a regular file")

// pathError gives an error the form that those of a local file have.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
