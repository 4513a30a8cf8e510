//go:build !race

package sgemm

const raceDetector = false
