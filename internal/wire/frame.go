package wire

import (
	"fmt"
	"slices"
)

// Kind says what a frame asks or answers.
type Kind uint8

// The kinds of frames. Their numbers are part of the format: append only.
const (
	Hello   Kind = iota + 1 // introduces a member on a new connection, and answers that
	Push                    // worker → server: gradient sums of a piece
	PushAck                 // answers Push
	Pull                    // worker → server: asks for a piece's parameters
	Pulled                  // answers Pull
	Move                    // server → server: a piece's state at a transition
	MoveAck                 // answers Move
	Refresh                 // the receiver's generation is not the sender's: ask the controller
	Failure                 // answers any request that could not be served; Text says why
	Vote                    // server → server: its part of the norm of a step's gradient
	VoteAck                 // answers Vote
)

// last is the highest kind.
const last = VoteAck

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Hello:
		return "hello"
	case Push:
		return "push"
	case PushAck:
		return "push-ack"
	case Pull:
		return "pull"
	case Pulled:
		return "pulled"
	case Move:
		return "move"
	case MoveAck:
		return "move-ack"
	case Refresh:
		return "refresh"
	case Failure:
		return "failure"
	case Vote:
		return "vote"
	case VoteAck:
		return "vote-ack"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Header is the fixed part of a frame. A field that a kind does not use is zero.
type Header struct {
	Kind        Kind
	Flags       uint8  // bits that belong to the kind
	Outcome     uint8  // of an answer: the kind of failure or verdict, 0 for success
	Role        uint8  // of the sender
	Slots       uint8  // arrays that follow each other in Values (parameters, optimizer state)
	Run         uint64 // run id
	Generation  uint32 // generation the sender acts under
	From        uint32 // member id of the sender
	Incarnation uint64 // of the sender: with From its identity
	Request     uint64 // chosen by the asker, echoed in the answer; 0 on frames nobody waits for
	Step        int64  // step, and so version
	Sequence    int64  // per incarnation, for asynchronous pushes
	Block       uint32 // index of the block
	Offset      uint64 // first element of the piece in its block
	Size        uint64 // elements of the piece
	Weight      int64  // denominator of the sums in Values (examples or tokens)
	Updates     int64  // updates applied to the piece so far
	Digest      uint64 // of the piece's state
}

// Frame is one message of the data plane.
//
// A frame that a Reader returned may hold memory of a Pool: its owner calls
// Release once it no longer needs Rows and Values, or leaves them to the
// garbage collector. A shallow copy of a frame shares that memory.
type Frame struct {
	Header
	Rows   []int32   // row indices of a sparse piece; nil for a dense one
	Values []float32 // row-major values
	Text   string    // short: a reason, an address

	mem *slab // pooled memory under Rows and Values, nil if there is none
}

// Release gives the frame's pooled memory back and clears Rows and Values. No
// slice of them may be used afterwards. On frames without pooled memory and on
// released frames it only clears the slices.
func (f *Frame) Release() {
	mem := f.mem
	f.mem, f.Rows, f.Values = nil, nil, nil
	if mem != nil {
		mem.release()
	}
}

// View returns a frame with f's header and text that shares Rows and Values with
// f but not the ownership of their memory: releasing it leaves f as it is.
func (f *Frame) View() *Frame {
	return &Frame{Header: f.Header, Rows: f.Rows, Values: f.Values, Text: f.Text}
}

// Clone returns a deep copy that shares no memory with f.
func (f *Frame) Clone() *Frame {
	return &Frame{Header: f.Header, Rows: slices.Clone(f.Rows), Values: slices.Clone(f.Values), Text: f.Text}
}

// Length returns the number of bytes of the encoded frame.
func (f *Frame) Length() int64 {
	return HeaderSize + 4*int64(len(f.Rows)) + 4*int64(len(f.Values)) + int64(len(f.Text))
}

// Check reports what makes f impossible to send in a frame of at most max bytes.
// The error wraps ErrInvalid or ErrTooLarge.
func (f *Frame) Check(max int64) error {
	if f.Kind < Hello || f.Kind > last {
		return fmt.Errorf("encode frame: %w: unknown %s", ErrInvalid, f.Kind)
	}
	if len(f.Text) > MaxText {
		return fmt.Errorf("encode %s frame: %w: its text has %d bytes, at most %d are allowed", f.Kind, ErrInvalid, len(f.Text), MaxText)
	}
	if n := f.Length(); n > max {
		return tooLarge("encode", &f.Header, fmt.Sprint(n), max)
	}
	return nil
}
