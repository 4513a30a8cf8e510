//go:build race

package models_test

// raceDetector: under it sync.Pool throws away at random.
const raceDetector = true
