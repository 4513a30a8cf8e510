package order

import "fmt"

// Stream is the order of a running text for a model that carries its state from
// each window of words to the next, as in truncated back-propagation through time
// (Zaremba and others, 2014; Merity and others, 2018). The text is cut into
// windows, and the windows into Lanes contiguous parts. In each step every lane
// goes on with its next window, so lane b of step k reads what follows what it
// read in step k-1, and its state may be carried along.
//
// A lane, not a worker, owns a state: it is what a virtual worker is elsewhere.
// Worker rank of workers has the lanes [Slice](Lanes, rank, workers); when the
// number of workers changes, states move with their lanes, and what is read
// stays the same.
//
// Every window comes exactly once an epoch. Where the lanes do not divide them,
// the first lanes have one more, and the others do nothing in an epoch's last
// step. States start from zero with each epoch.
//
// A job that trains on a Stream counts its steps as one with the [Plan]{Examples:
// Windows(), Batch: Lanes} does, and keeps its place in the same [Cursor].
type Stream struct {
	Tokens int `json:"tokens"` // words of the text
	Window int `json:"window"` // words of a window
	Lanes  int `json:"lanes"`  // M, windows of a step over all workers
}

// Validate refuses a stream without a word to predict, window or lane. The
// methods of a stream that is not valid return zeros and nothing.
func (s Stream) Validate() error {
	switch {
	case s.Tokens < 2:
		return fmt.Errorf("stream: %w: a text of %d words, want 2 or more; check that the file is not empty", ErrInvalid, s.Tokens)
	case s.Window < 1:
		return fmt.Errorf("stream: %w: windows of %d words, want 1 or more", ErrInvalid, s.Window)
	case s.Lanes < 1:
		return fmt.Errorf("stream: %w: %d lanes, want 1 or more; set --batch", ErrInvalid, s.Lanes)
	}
	return nil
}

func (s Stream) valid() bool { return s.Tokens > 1 && s.Window > 0 && s.Lanes > 0 }

// Windows returns ceil((Tokens-1)/Window): the last word is only predicted, and
// what is left at the end of the text is a window of its own.
func (s Stream) Windows() int {
	if !s.valid() {
		return 0
	}
	return (s.Tokens-2)/s.Window + 1
}

// Words returns the range [lo, hi) of words that a window reads; it predicts
// [lo+1, hi+1). There are Window of them, fewer in the last window only, and
// none in one that does not exist.
func (s Stream) Words(window int) (lo, hi int) {
	if window < 0 || window >= s.Windows() {
		return 0, 0
	}
	lo = window * s.Window
	return lo, lo + min(s.Window, s.Tokens-1-lo)
}

// StepsPerEpoch returns ceil(Windows/Lanes).
func (s Stream) StepsPerEpoch() int64 {
	if !s.valid() {
		return 0
	}
	return int64((s.Windows()-1)/s.Lanes) + 1
}

// Begins reports whether step (from 1) is an epoch's first, in which every lane
// starts from a state of zeros.
func (s Stream) Begins(step int64) bool {
	return s.valid() && step >= 1 && (step-1)%s.StepsPerEpoch() == 0
}

// At returns the epoch of a step and the window that a lane reads in it; ok is
// false if it reads none.
func (s Stream) At(step int64, lane int) (epoch, window int, ok bool) {
	if !s.valid() || step < 1 {
		return 0, 0, false
	}
	per := s.StepsPerEpoch()
	lo, hi := Slice(s.Windows(), lane, s.Lanes)
	epoch, window = int((step-1)/per), lo+int((step-1)%per)
	return epoch, window, window < hi
}

// IDs returns the windows that lanes [lo, hi) read in a step, in order; lanes
// that read none are left out, which are the last ones of an epoch's last step.
// It overwrites dst and reuses its memory.
func (s Stream) IDs(step int64, lo, hi int, dst []int) []int {
	dst = dst[:0]
	for lane := max(lo, 0); lane < min(hi, s.Lanes); lane++ {
		if _, window, ok := s.At(step, lane); ok {
			dst = append(dst, window)
		}
	}
	return dst
}
