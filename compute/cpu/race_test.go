//go:build race

package cpu_test

// raceDetector says that sync.Pool drops items at random, as it does under the
// race detector, so that allocations cannot be counted.
const raceDetector = true
