package rpc

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"optimus/internal/failure"
)

// A rescale may take its own timeout and then still answer; nothing waits for ever.
func TestDeadline(t *testing.T) {
	if got, own := deadline(&RescaleRequest{TimeoutMs: 90_000}), 90*time.Second; got <= own {
		t.Errorf("a rescale of %v is cut after %v", own, got)
	}
	short := deadline(&StatusRequest{})
	for _, request := range []any{&RescaleRequest{}, &CheckpointRequest{}, &StopRequest{}} {
		if got := deadline(request); got <= short {
			t.Errorf("%T may take %v, no longer than a status (%v)", request, got, short)
		}
	}
}

// No failure turns into success, and what gRPC makes itself has a kind.
func TestCodes(t *testing.T) {
	for _, k := range failure.Kinds() {
		if codeOf(k) == codes.OK || codeOf(k) == codes.Unknown {
			t.Errorf("kind %s has the code %s", k, codeOf(k))
		}
	}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if kindOf(c) == "" {
			t.Errorf("code %s has no kind", c)
		}
	}
}
