package level

import (
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	present := Present()
	if present[0] != Plain {
		t.Fatalf("levels %v do not begin with %s", present, Plain)
	}
	if got, err := Choose(""); err != nil || got != present[len(present)-1] {
		t.Errorf("unforced: %q, %v; want the last of %v", got, err, present)
	}
	for _, name := range []string{Plain, AVX2, AVX512} {
		got, err := Choose(name)
		if slices.Contains(present, name) {
			if err != nil || got != name {
				t.Errorf("forced %s: %q, %v", name, got, err)
			}
			continue
		}
		if got != "" || err == nil || !strings.Contains(err.Error(), "lacks") || !strings.Contains(err.Error(), Env) {
			t.Errorf("forced %s, which is absent: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"avx3", "AVX2", " "} {
		if got, err := Choose(name); got != "" || err == nil || !strings.Contains(err.Error(), "no such level") {
			t.Errorf("forced %q: %q, %v", name, got, err)
		}
	}
}

func TestCurrent(t *testing.T) {
	first, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(Env, "nonsense")
	if again, err := Current(); err != nil || again != first {
		t.Errorf("the level changed from %q to %q (%v) while the process ran", first, again, err)
	}
}
