//go:build !race

package cpu_test

const raceDetector = false
