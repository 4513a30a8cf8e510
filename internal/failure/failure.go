// Package failure is the project's error for people and for programs.
//
// A failure says four things. The operation and its subject tell where it
// happened ("save", "checkpoint 1200"). The cause tells why. The advice tells
// the reader what to do next. The kind, from a closed list, is for programs: it
// decides retries and exit codes, and it crosses the wire, so that a client of
// the control service can tell a lost member from a bad argument without
// reading English.
//
//	return failure.E("save", path, failure.NoSpace, err, "free 45 MB or move the run's folder")
//
// prints as one line:
//
//	save /runs/a/ckpt-3: no space left on device; free 45 MB or move the run's folder
//
// Errors of the standard library have a kind as well: KindOf looks through the
// chain and knows the causes that the operating system reports.
package failure

import (
	"encoding/json"
	"errors"
	"strings"
)

// Error is one failure. Build it with E; read its kind with KindOf.
type Error struct {
	Op      string // what was being done: "rescale", "pull"
	Subject string // to what: a job, a member, a file; may be empty
	Kind    Kind
	Cause   error  // may be nil
	Do      string // what the reader can do about it; may be empty
}

// E builds a failure. An empty kind is taken from the cause (KindOf). A nil
// cause prints as the kind.
func E(op, subject string, kind Kind, cause error, do string) error {
	if kind == "" {
		kind = KindOf(cause)
	}
	return &Error{Op: op, Subject: subject, Kind: kind, Cause: cause, Do: do}
}

// Error returns "op subject: cause; do" as one line, whatever the parts hold.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Subject != "" {
		if e.Op != "" {
			b.WriteByte(' ')
		}
		b.WriteString(e.Subject)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.cause())
	if e.Do != "" {
		b.WriteString("; ")
		b.WriteString(e.Do)
	}
	return oneLine(b.String())
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func (e *Error) cause() string {
	if e.Cause == nil {
		return string(e.Kind)
	}
	return e.Cause.Error()
}

// oneLine folds the lines of s (errors.Join makes several) into one.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\r") {
		return s
	}
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// wire is the JSON form: causes travel as their text, their kind is already in
// Kind.
type wire struct {
	Op      string `json:"op,omitempty"`
	Subject string `json:"subject,omitempty"`
	Kind    Kind   `json:"kind"`
	Cause   string `json:"cause,omitempty"`
	Do      string `json:"do,omitempty"`
}

// MarshalJSON writes {"op","subject","kind","cause","do"}.
func (e *Error) MarshalJSON() ([]byte, error) {
	w := wire{Op: e.Op, Subject: e.Subject, Kind: e.Kind, Do: e.Do}
	if e.Cause != nil {
		w.Cause = oneLine(e.Cause.Error())
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON wrote. A kind that this program does not
// know (a newer peer's) becomes Internal; an absent one is an error.
func (e *Error) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*e = Error{Op: w.Op, Subject: w.Subject, Kind: w.Kind, Do: w.Do}
	if w.Kind == "" {
		return errors.New("failure without a kind")
	}
	if w.Cause != "" {
		e.Cause = errors.New(w.Cause)
	}
	return nil
}

// Encode returns the JSON form of any error, for the wire: an Error as it is,
// any other error as one with its text and KindOf. A nil error gives nil.
func Encode(err error) []byte {
	if err == nil {
		return nil
	}
	e, ok := err.(*Error)
	if !ok {
		e = &Error{Kind: KindOf(err), Cause: err}
	}
	b, _ := json.Marshal(e) // strings only: cannot fail
	return b
}

// Decode is the inverse of Encode: nil for no bytes, else the failure. Bytes
// that hold none give a failure of kind Corrupt.
func Decode(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	e := new(Error)
	if err := json.Unmarshal(b, e); err != nil {
		return E("read a peer's error", "", Corrupt, err, "check that both sides run the same version")
	}
	return e
}
