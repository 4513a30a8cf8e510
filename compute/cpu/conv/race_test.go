//go:build race

package conv

// Under the race detector sync.Pool drops items at random.
const raceDetector = true
