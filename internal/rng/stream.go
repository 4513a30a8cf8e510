package rng

// Stream draws the values of a key one after another, for one goroutine.
type Stream struct {
	key  Key
	next uint64
}

// Stream returns the key's values from the first on.
func (k Key) Stream() *Stream { return &Stream{key: k} }

// Float64 returns the next value, uniform in [0,1).
func (s *Stream) Float64() float64 {
	s.next++
	return s.key.Float64(s.next - 1)
}

// IntN returns the next value, uniform in [0,n); n must be positive.
func (s *Stream) IntN(n int) int {
	s.next++
	return s.key.Intn(s.next-1, n)
}

// Shuffle puts n elements into an even random order (Fisher and Yates).
func (s *Stream) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, s.IntN(i+1))
	}
}
