// Package jobname says which names a job may have. A job's name is its folder's
// and the beginning of its tasks' names, so that one rule must suit file systems,
// DNS labels and Kubernetes alike.
package jobname

import "fmt"

// Max is the longest name. Derived names add at most 13 characters
// (-coordinator, -worker-4096) and must stay within the 63 of a DNS label.
const Max = 50

// Allowed says what Valid accepts.
var Allowed = fmt.Sprintf("1 to %d characters of a-z, 0-9 and '-', first a letter, last a letter or digit", Max)

// Valid reports whether a job may have the name.
func Valid(name string) bool {
	ok := len(name) >= 1 && len(name) <= Max
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z'
		digit := c >= '0' && c <= '9'
		inner := i > 0 && (digit || c == '-' && i < len(name)-1)
		ok = ok && (letter || inner)
	}
	return ok
}
