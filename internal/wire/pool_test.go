package wire

import (
	"bytes"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// A class holds what is asked of it, wastes at most a quarter, and no two sizes
// share a class.
func TestSizeClass(t *testing.T) {
	sizes := make(map[int]int)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(smallest, 1<<40).Draw(rt, "n")
		class, size := sizeClass(n)
		if size < n || 4*size > 5*n {
			rt.Fatalf("%d words get %d", n, size)
		}
		if class < 0 || class >= len(Pool{}.classes) {
			rt.Fatalf("%d words get class %d of %d", n, class, len(Pool{}.classes))
		}
		if other, ok := sizes[class]; ok && other != size {
			rt.Fatalf("class %d has sizes %d and %d", class, other, size)
		}
		sizes[class] = size
	})
}

// Values start on a multiple of 64 bytes whatever precedes them.
func TestAlignment(t *testing.T) {
	var pool Pool
	for _, rows := range []int{0, 1, 15, 16, 17, 3000} {
		for _, values := range []int{1, 100, 5000, 1 << 20} {
			f := &Frame{Header: Header{Kind: Push}, Rows: make([]int32, rows), Values: make([]float32, values)}
			got, err := NewDecoder(bytes.NewReader(encode(t, f)), 0, &pool).Decode()
			if err != nil {
				t.Fatal(err)
			}
			if over := misalignment(got.Values); over != 0 {
				t.Errorf("%d rows, %d values: values start %d bytes past a multiple of %d", rows, values, over, align)
			}
			got.Release()
		}
	}
}

// A steady stream of large frames allocates the frame itself and nothing that
// grows with its values.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("pools drop buffers at random under the race detector")
	}
	f := &Frame{Header: Header{Kind: Push}, Values: make([]float32, 1<<18)}
	b := encode(t, f)
	enc := NewEncoder(0)
	if got := testing.AllocsPerRun(50, func() {
		if _, err := enc.WriteTo(io.Discard, f); err != nil {
			t.Fatal(err)
		}
	}); got > 1 {
		t.Errorf("encoding allocates %v times a frame, want at most 1", got)
	}
	r, pool := bytes.NewReader(b), &Pool{}
	dec := NewDecoder(r, 0, pool)
	if got := testing.AllocsPerRun(50, func() {
		r.Reset(b)
		g, err := dec.Decode()
		if err != nil {
			t.Fatal(err)
		}
		g.Release()
	}); got > 2 {
		t.Errorf("decoding allocates %v times a frame, want at most 2", got)
	}
}

func BenchmarkEncode(b *testing.B) {
	f := &Frame{Header: Header{Kind: Push}, Values: make([]float32, 1<<20)}
	enc := NewEncoder(0)
	b.SetBytes(f.Length())
	for b.Loop() {
		if _, err := enc.Encode(f); err != nil {
			b.Fatal(err)
		}
	}
}
