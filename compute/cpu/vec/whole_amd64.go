package vec

import "optimus/internal/level"

// whole returns how many of n elements the assembly takes at this level: whole
// groups of 32.
func whole(name string, n int) int {
	if name == level.Plain {
		return 0
	}
	return n &^ 31
}
