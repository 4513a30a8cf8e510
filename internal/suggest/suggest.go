// Package suggest finds the word that a person meant: the name of a model, a
// verb or a flag nearest to the one that does not exist.
//
// Near is counted in slips of the fingers: letters left out, added, replaced,
// or swapped with their neighbour. Case, and '_' for '-', are no slips. A word
// may have slips in a third of its letters, and one of two or three letters one;
// beyond that any proposal would be a guess, and none is made.
package suggest

import (
	"fmt"
	"strings"
	"unicode"
)

// few is how many names an error may list.
const few = 16

// Find returns the element of all that has the name. The error for a name that
// none has wraps unknown and says what may have been meant.
func Find[T any](name string, all []T, nameOf func(T) string, unknown error) (T, error) {
	names := make([]string, len(all))
	for i, v := range all {
		if names[i] = nameOf(v); names[i] == name {
			return v, nil
		}
	}
	var none T
	if meant := Meant(name, names); meant != "" {
		return none, fmt.Errorf("%w %q; %s", unknown, name, meant)
	}
	return none, fmt.Errorf("%w %q", unknown, name)
}

// Meant is the advice for a name that is not among those known: the nearest of
// them, or all if there are few, or nothing.
func Meant(name string, known []string) string {
	if near, ok := Nearest(name, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) > 0 && len(known) <= few {
		return "known: " + strings.Join(known, ", ")
	}
	return ""
}

// Nearest returns the word of among with the fewest slips from word, the first
// of equals. It is false if none is near.
func Nearest(word string, among []string) (string, bool) {
	best, found := "", false
	typed := fold(word)
	limit := min(max(1, len(typed)/3), len(typed)-1)
	for _, name := range among {
		if d := distance(typed, fold(name)); d <= limit {
			best, found, limit = name, true, d-1
		}
	}
	return best, found
}

func fold(s string) []rune {
	return []rune(strings.Map(func(r rune) rune {
		if r == '_' {
			return '-'
		}
		return unicode.ToLower(r)
	}, s))
}

// distance is the number of insertions, deletions, substitutions and swaps of
// neighbours that turn a into b, no letter being touched twice (optimal string
// alignment). It fills the table of the distances between the beginnings of a
// and b row by row and keeps the last three rows.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			substitute := last[j]
			if a[i] != b[j] {
				substitute++
			}
			row[j+1] = min(substitute, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
