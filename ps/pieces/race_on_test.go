//go:build race

package pieces

// raceEnabled: the race detector's own bookkeeping allocates.
const raceEnabled = true
