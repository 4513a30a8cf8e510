//go:build race

package sgemm

// Under the race detector sync.Pool drops items at random.
const raceDetector = true
