package failure_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/internal/failure"
)

func ExampleE() {
	err := failure.E("save", "checkpoint 1200", "", syscall.ENOSPC, "free 45 MB and resume")
	fmt.Println(err)
	fmt.Println(failure.KindOf(err), failure.ExitCode(err))
	// Output:
	// save checkpoint 1200: no space left on device; free 45 MB and resume
	// no-space 1
}

func TestError(t *testing.T) {
	inner := failure.E("dial", "server 1", failure.Unavailable, errors.New("refused"), "start it")
	tests := []struct {
		err  error
		want string
	}{
		{failure.E("pull", "block 3", failure.Conflict, nil, ""), "pull block 3: conflict"},
		{failure.E("", "", failure.Internal, errors.New("boom"), ""), "boom"},
		{failure.E("", "job x", failure.NotFound, nil, "list jobs"), "job x: not-found; list jobs"},
		{failure.E("train", "", "", inner, ""), "train: dial server 1: refused; start it"},
		{failure.E("check", "job", failure.InvalidArgument, errors.Join(errors.New("a"), errors.New("b")), "do\nc"),
			"check job: a; b; do; c"},
	}
	for _, test := range tests {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got  %q\nwant %q", got, test.want)
		}
	}
}

// plainKind is an error of a package that imports nothing of ours.
type plainKind string

func (p plainKind) Error() string { return "plain" }
func (p plainKind) Kind() string  { return string(p) }

func TestKindOf(t *testing.T) {
	_, notExist := os.Open("no/such/file")
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	tests := []struct {
		err  error
		kind failure.Kind
		exit int
	}{
		{nil, "", 0},
		{errors.New("?"), failure.Internal, 1},
		{notExist, failure.NotFound, 1},
		{fmt.Errorf("w: %w", fs.ErrPermission), failure.Permission, 1},
		{fs.ErrExist, failure.AlreadyExists, 1},
		{canceled.Err(), failure.Canceled, 130},
		{context.DeadlineExceeded, failure.Deadline, 1},
		{os.ErrDeadlineExceeded, failure.Deadline, 1},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, failure.Unavailable, 1},
		{plainKind("invalid-argument"), failure.InvalidArgument, 2},
		{plainKind("of a newer list"), failure.Internal, 1},
		{fmt.Errorf("outer: %w", failure.E("op", "", failure.LostMember, context.Canceled, "")), failure.LostMember, 1},
		{failure.E("op", "", "", failure.E("in", "", failure.NonFinite, nil, ""), ""), failure.NonFinite, 1},
	}
	for _, test := range tests {
		if got := failure.KindOf(test.err); got != test.kind {
			t.Errorf("KindOf(%v) = %q, want %q", test.err, got, test.kind)
		}
		if got := failure.ExitCode(test.err); got != test.exit {
			t.Errorf("ExitCode(%v) = %d, want %d", test.err, got, test.exit)
		}
	}
}

// The peer reads the same line and the same kind as the sender.
func TestWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var cause error
		if text := rapid.StringN(0, 20, -1).Draw(t, "cause"); text != "" {
			cause = errors.New(text)
		}
		sent := failure.E(rapid.String().Draw(t, "op"), rapid.String().Draw(t, "subject"),
			rapid.SampledFrom(failure.Kinds()).Draw(t, "kind"), cause, rapid.String().Draw(t, "do"))
		got := failure.Decode(failure.Encode(sent))
		if failure.KindOf(got) != failure.KindOf(sent) {
			t.Fatalf("kind %q became %q", failure.KindOf(sent), failure.KindOf(got))
		}
		if again := failure.Decode(failure.Encode(got)); !cmp.Equal(again.Error(), got.Error()) {
			t.Fatalf("text %q became %q", got, again)
		}
		if strings.ContainsAny(got.Error(), "\n\r") {
			t.Fatalf("%q is more than one line", got)
		}
	})
}

func TestEncodeOtherErrors(t *testing.T) {
	if b := failure.Encode(nil); b != nil || failure.Decode(nil) != nil {
		t.Errorf("a nil error became %s", b)
	}
	got := failure.Decode(failure.Encode(fmt.Errorf("open: %w", fs.ErrNotExist)))
	if failure.KindOf(got) != failure.NotFound || got.Error() != "open: file does not exist" {
		t.Errorf("got %q of kind %q", got, failure.KindOf(got))
	}
	var newer failure.Error
	if err := json.Unmarshal([]byte(`{"kind":"of-2030","cause":"c"}`), &newer); err != nil || newer.Kind != failure.Internal {
		t.Errorf("an unknown kind became %q (%v)", newer.Kind, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"op":"a","kind":"corrupt"}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		err := failure.Decode(b)
		if (err == nil) != (len(b) == 0) {
			t.Fatalf("%q gave %v", b, err)
		}
		if err != nil && failure.KindOf(err) == "" {
			t.Fatalf("%q gave an error without a kind", b)
		}
	})
}
