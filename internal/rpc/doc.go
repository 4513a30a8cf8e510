// Package rpc is the control service of a run: members attach to the controller,
// the command line and the daemon ask for status, rescaling, checkpoints and the
// end. It is gRPC over a Unix socket; bulk data goes another way (package
// transport).
//
// The service, control.proto, carries the payloads of others as JSON (messages of
// the elastic state machines, status, reports), so it stays the same while they
// grow. [Serve] and [Dial] wrap what both sides must agree on and what is easily
// forgotten: a socket that only its owner can reach, room for large messages, a
// deadline on each call, dead peers found by pings, and errors that keep their
// kind across the wire: what an implementation returns as a failure of package
// failure, its caller gets as the same failure.
//
// The generated code is made without protoc; see gen.
package rpc

//go:generate go run ./gen
