package jobname

import (
	"fmt"
	"strings"
	"testing"
)

func TestValid(t *testing.T) {
	for _, name := range []string{"a", "cnn-rand-3", "a1-b2", strings.Repeat("x", Max)} {
		if !Valid(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", strings.Repeat("x", Max+1), "A", "1a", "a-", "-", "-a", "a_b", "a/b", "..", ".", "../x", "a b", "ü", "a\n", "a\x00"} {
		if Valid(name) {
			t.Errorf("%q is allowed", name)
		}
	}
}

// The longest name that a task is given fits a DNS label.
func TestDerivedNamesFit(t *testing.T) {
	longest := strings.Repeat("x", Max)
	for _, task := range []string{longest + "-coordinator", fmt.Sprintf("%s-worker-%d", longest, 4096)} {
		if len(task) > 63 {
			t.Errorf("%s has %d characters", task, len(task))
		}
	}
}
