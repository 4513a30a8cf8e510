package bpe

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"testing"
)

// FuzzParse: a list of merges is read, or refused in one line; it is the same when it
// was written and read again; and it takes no more memory than a bound for its size.
func FuzzParse(f *testing.F) {
	f.Add([]byte("#version: 0.2\na b\nab c</w>\n"), []byte("abc ab@@"))
	f.Add([]byte("a b\nab </w>\n"), []byte("ab"))
	f.Add([]byte("#version: 0.2\na a\naa aa\naaaa aaaa\n"), []byte("aaaaaaaaa"))
	f.Add([]byte("#version: 9\n"), []byte(" "))
	f.Fuzz(func(t *testing.T, list, text []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Parse(list)
		runtime.ReadMemStats(&after)
		if got, bound := after.TotalAlloc-before.TotalAlloc, uint64(1<<16+200*len(list)); got > bound {
			t.Errorf("%d bytes were allocated for a list of %d, want at most %d", got, len(list), bound)
		}
		if err != nil {
			if _, ok := errors.AsType[*SyntaxError](err); !ok || bytes.ContainsAny([]byte(err.Error()), "\r\n") {
				t.Errorf("%v", err)
			}
			return
		}
		written, err := m.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(written)
		if err != nil || !slices.Equal(again.list, m.list) || again.apart != m.apart {
			t.Errorf("%v: written %q", err, written)
		}
		if got := Decode(m.NewEncoder().Append(nil, text)); !bytes.Equal(got, text) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
