//go:build !race

package pieces

const raceEnabled = false
