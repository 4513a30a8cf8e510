// Package level chooses, once per process, which instructions the CPU kernels
// use. All kernels of a process run at one level, so that a result depends on
// the level's name and not on which kernel happened to be called.
//
// The best level the processor has is taken, unless the environment variable
// OPTIMUS_CPU names another one. A forced level that is unknown, or that this
// processor lacks, is an error: nothing falls back in silence.
package level

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// The levels, from slow to fast. Their names appear in fingerprints, logs and
// the variable OPTIMUS_CPU.
const (
	Plain  = "plain"  // Go code, on every architecture
	AVX2   = "avx2"   // amd64 with AVX2 and FMA
	AVX512 = "avx512" // amd64 with AVX-512 F, BW, DQ and VL
)

// Env is the environment variable that forces a level.
const Env = "OPTIMUS_CPU"

// Present returns the levels that this processor can run, from slow to fast.
func Present() []string {
	out := []string{Plain}
	if hasAVX2() {
		out = append(out, AVX2)
		if hasAVX512() {
			out = append(out, AVX512)
		}
	}
	return out
}

// Check returns an error if name is no level or the processor lacks it.
func Check(name string) error {
	present := Present()
	if slices.Contains(present, name) {
		return nil
	}
	if !slices.Contains([]string{Plain, AVX2, AVX512}, name) {
		return fmt.Errorf("choose CPU level %q: no such level; use one of %s", name, strings.Join(present, ", "))
	}
	return fmt.Errorf("choose CPU level %q: this processor lacks it; use one of %s", name, strings.Join(present, ", "))
}

// Choose returns the level that forced asks for, or the fastest one present if
// forced is empty.
func Choose(forced string) (string, error) {
	if forced == "" {
		present := Present()
		return present[len(present)-1], nil
	}
	if err := Check(forced); err != nil {
		return "", fmt.Errorf("%s: %w", Env, err)
	}
	return forced, nil
}

// Current returns the level of this process. The environment is read at the
// first call only.
func Current() (string, error) { return current() }

var current = sync.OnceValues(func() (string, error) { return Choose(os.Getenv(Env)) })
