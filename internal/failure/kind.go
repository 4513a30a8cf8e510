package failure

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
)

// Kind classifies a failure for programs. The list is closed.
type Kind string

// The kinds.
const (
	InvalidArgument Kind = "invalid-argument" // the request can never succeed as it stands
	NotFound        Kind = "not-found"        // no such job, file, workload
	AlreadyExists   Kind = "already-exists"   // the name is taken
	Permission      Kind = "permission"       // the operating system or a token refuses
	Unavailable     Kind = "unavailable"      // nobody answers now; trying again may help
	Deadline        Kind = "deadline"         // time ran out
	Canceled        Kind = "canceled"         // a person or a parent stopped it
	Conflict        Kind = "conflict"         // another generation, step or owner won
	LostMember      Kind = "lost-member"      // a server or worker died or was fenced off
	NonFinite       Kind = "non-finite"       // NaN or infinity in a loss or gradient
	Corrupt         Kind = "corrupt"          // bytes that do not hold what they should
	NoSpace         Kind = "no-space"         // a disk or quota is full
	Internal        Kind = "internal"         // everything else: a defect of ours
)

// Kinds returns the closed list.
func Kinds() []Kind {
	return []Kind{InvalidArgument, NotFound, AlreadyExists, Permission, Unavailable, Deadline,
		Canceled, Conflict, LostMember, NonFinite, Corrupt, NoSpace, Internal}
}

// UnmarshalText reads a kind from the wire; one that is not in the list
// becomes Internal, so that a newer peer cannot widen it.
func (k *Kind) UnmarshalText(b []byte) error {
	*k = Kind(b)
	if !slices.Contains(Kinds(), *k) {
		*k = Internal
	}
	return nil
}

// known pairs causes of the standard library with their kinds; the first match
// wins.
func known() []struct {
	cause error
	kind  Kind
} {
	return []struct {
		cause error
		kind  Kind
	}{
		{context.Canceled, Canceled},
		{context.DeadlineExceeded, Deadline},
		{fs.ErrNotExist, NotFound},
		{fs.ErrExist, AlreadyExists},
		{fs.ErrPermission, Permission},
		{syscall.EROFS, Permission},
		{syscall.ENOSPC, NoSpace},
		{syscall.EDQUOT, NoSpace},
		{syscall.ECONNREFUSED, Unavailable},
		{syscall.ECONNRESET, Unavailable},
		{syscall.EPIPE, Unavailable},
		{syscall.EADDRINUSE, Conflict},
		{io.ErrUnexpectedEOF, Corrupt},
	}
}

// KindOf returns the kind of err: that of the outermost failure in its chain,
// else that of an error with a method Kind() string (packages that import
// nothing of ours declare their errors so), else the kind of a cause that the
// standard library names, else Internal. A nil error has no kind ("").
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e := (*Error)(nil); errors.As(err, &e) {
		return e.Kind
	}
	if e := (interface{ Kind() string })(nil); errors.As(err, &e) {
		if k := Kind(e.Kind()); slices.Contains(Kinds(), k) {
			return k
		}
	}
	if e := (interface{ Timeout() bool })(nil); errors.As(err, &e) && e.Timeout() {
		return Deadline
	}
	for _, c := range known() {
		if errors.Is(err, c.cause) {
			return c.kind
		}
	}
	return Internal
}

// ExitCode returns the exit status of a program that ends with err: 0 for nil,
// 2 for usage errors (InvalidArgument), 130 when interrupted (Canceled, as
// shells report SIGINT), 1 for every other failure.
func ExitCode(err error) int {
	switch KindOf(err) {
	case "":
		return 0
	case InvalidArgument:
		return 2
	case Canceled:
		return 130
	}
	return 1
}
