//go:build !race

package conv

const raceDetector = false
