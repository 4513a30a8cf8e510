//go:build !linux

package conv

import "time"

var start = time.Now()

// now is the time since the start of the program.
func now() time.Duration { return time.Since(start) }
