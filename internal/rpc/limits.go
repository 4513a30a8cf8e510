package rpc

import "time"

// What both sides must agree on.
const (
	// maxMessage bounds a message: a status or an assignment of a large model.
	maxMessage = 64 << 20

	// pingAfter and pingTimeout find a peer that hangs behind an open stream. A
	// process that died is told by the kernel at once.
	pingAfter   = 30 * time.Second
	pingTimeout = 20 * time.Second
)

// Deadlines of calls whose context has none.
const (
	shortCall = 30 * time.Second // answered from memory
	longCall  = 10 * time.Minute // waits for a transition or a disk
	rescale   = 10 * time.Second // to hear of a rescale's own timeout
)

// deadline returns how long a call may take unless its context says otherwise.
func deadline(request any) time.Duration {
	switch r := request.(type) {
	case *RescaleRequest:
		if r.TimeoutMs > 0 {
			return time.Duration(r.TimeoutMs)*time.Millisecond + rescale
		}
		return longCall
	case *CheckpointRequest, *StopRequest:
		return longCall
	}
	return shortCall
}
