package rpc

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"optimus/internal/failure"
)

// ErrNotRunning says that nobody serves the socket: the run has ended, or its
// process died. Callers know the job's name and say it.
var ErrNotRunning = errors.New("the run is not running")

// ErrRunning says that another process serves the socket already.
var ErrRunning = errors.New("the run is running already")

// codeOf gives the status code for a kind: what generic gRPC tools show. The kind
// itself travels in the status's detail.
func codeOf(k failure.Kind) codes.Code {
	switch k {
	case failure.InvalidArgument:
		return codes.InvalidArgument
	case failure.NotFound:
		return codes.NotFound
	case failure.AlreadyExists:
		return codes.AlreadyExists
	case failure.Permission:
		return codes.PermissionDenied
	case failure.Unavailable:
		return codes.Unavailable
	case failure.Deadline:
		return codes.DeadlineExceeded
	case failure.Canceled:
		return codes.Canceled
	case failure.Conflict, failure.LostMember:
		return codes.Aborted
	case failure.NonFinite:
		return codes.FailedPrecondition
	case failure.Corrupt:
		return codes.DataLoss
	case failure.NoSpace:
		return codes.ResourceExhausted
	}
	return codes.Internal
}

// kindOf gives the kind for a status that gRPC itself made: no detail came.
func kindOf(c codes.Code) failure.Kind {
	switch c {
	case codes.Unavailable:
		return failure.Unavailable
	case codes.DeadlineExceeded:
		return failure.Deadline
	case codes.Canceled:
		return failure.Canceled
	case codes.ResourceExhausted, codes.Unimplemented, codes.InvalidArgument:
		return failure.InvalidArgument
	case codes.PermissionDenied, codes.Unauthenticated:
		return failure.Permission
	}
	return failure.Internal
}

// toStatus turns an implementation's error into one that crosses the wire. A
// status itself, such as a call returned that the implementation made, passes.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	s := status.New(codeOf(failure.KindOf(err)), err.Error())
	if detailed, failed := s.WithDetails(&Problem{FailureJson: failure.Encode(err)}); failed == nil {
		s = detailed
	}
	return s.Err()
}

// fromStatus turns an error of a gRPC call into a failure: the peer's own where it
// sent one, else one that says which call to whom failed. io.EOF, the end of a
// stream, stays itself.
func fromStatus(err error, method, peer string) error {
	if err == nil || err == io.EOF {
		return err
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range s.Details() {
		if p, ok := d.(*Problem); ok {
			return failure.Decode(p.FailureJson)
		}
	}
	kind, cause, do := kindOf(s.Code()), errors.New(s.Message()), ""
	switch s.Code() {
	case codes.Unavailable:
		cause = &causes{s.Message(), ErrNotRunning}
	case codes.DeadlineExceeded:
		cause = &causes{s.Message(), context.DeadlineExceeded}
	case codes.Canceled:
		cause = &causes{s.Message(), context.Canceled}
	case codes.Unimplemented:
		do = "use the same version of the program as the run"
	}
	return failure.E(strings.ToLower(path.Base(method)), peer, kind, cause, do)
}

// causes is a status's text with the error that programs look for.
type causes struct {
	text string
	is   error
}

func (c *causes) Error() string {
	if c.is == ErrNotRunning {
		return c.is.Error() + " any more (" + c.text + ")"
	}
	return c.text
}

func (c *causes) Unwrap() error { return c.is }

// clientStream converts the errors of a stream on the calling side.
type clientStream struct {
	grpc.ClientStream
	method, peer string
}

func (s *clientStream) SendMsg(m any) error {
	return fromStatus(s.ClientStream.SendMsg(m), s.method, s.peer)
}

func (s *clientStream) RecvMsg(m any) error {
	return fromStatus(s.ClientStream.RecvMsg(m), s.method, s.peer)
}

// serverStream converts the errors of a stream on the serving side.
type serverStream struct {
	grpc.ServerStream
	method string
}

func (s *serverStream) SendMsg(m any) error {
	return fromStatus(s.ServerStream.SendMsg(m), s.method, "client")
}

func (s *serverStream) RecvMsg(m any) error {
	return fromStatus(s.ServerStream.RecvMsg(m), s.method, "client")
}
