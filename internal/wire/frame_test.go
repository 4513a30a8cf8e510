package wire

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// encode returns the bytes of f.
func encode(t testing.TB, f *Frame) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := NewEncoder(0).WriteTo(&b, f)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(b.Len()) || n != f.Length() {
		t.Fatalf("WriteTo said %d, Length says %d, %d bytes were written", n, f.Length(), b.Len())
	}
	return b.Bytes()
}

// decode reads the one frame in b.
func decode(b []byte) (*Frame, error) { return NewDecoder(bytes.NewReader(b), 1<<20, nil).Decode() }

// roundTrip sends f through bytes and compares.
func roundTrip(t testing.TB, f *Frame) {
	t.Helper()
	got, err := decode(encode(t, f))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got, sameFrame()...); diff != "" {
		t.Fatalf("frame changed on its way (-sent +received):\n%s", diff)
	}
}

// sameFrame compares frames bit for bit, NaNs too.
func sameFrame() []cmp.Option {
	return []cmp.Option{
		cmpopts.IgnoreUnexported(Frame{}),
		cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }),
	}
}

// Every field of the header alone, at values that would show a cut, a shared byte
// or a lost sign. Fields added later are covered too.
func TestHeaderFields(t *testing.T) {
	typ := reflect.TypeFor[Header]()
	for i := range typ.NumField() {
		field := typ.Field(i)
		t.Run(field.Name, func(t *testing.T) {
			values := []uint64{1, 2, 0x81, 1<<31 + 3, 1<<32 + 2, 1<<53 + 1, 1<<63 - 1, 1 << 63, math.MaxUint64}
			if field.Name == "Kind" {
				values = []uint64{uint64(Hello), uint64(Move), uint64(last)}
			}
			for _, v := range values {
				f := &Frame{Header: Header{Kind: Push}}
				to := reflect.ValueOf(&f.Header).Elem().Field(i)
				if to.CanInt() {
					to.SetInt(int64(v))
				} else {
					to.SetUint(v << (64 - to.Type().Bits()) >> (64 - to.Type().Bits()))
				}
				roundTrip(t, f)
			}
		})
	}
}

// Keys that differ only above 32 bits must not meet: apache/mxnet#8785.
func TestWideOffsets(t *testing.T) {
	wide := []uint64{2, 1<<32 + 2, 1 << 31, 1<<53 + 1, 1<<63 - 1}
	seen := make(map[uint64]uint64)
	for _, offset := range wide {
		got, err := decode(encode(t, &Frame{Header: Header{Kind: Push, Offset: offset, Size: offset}}))
		if err != nil {
			t.Fatal(err)
		}
		if got.Offset != offset || got.Header.Size != offset {
			t.Errorf("offset %d arrived as offset %d, size %d", offset, got.Offset, got.Header.Size)
		}
		if other, ok := seen[got.Offset]; ok {
			t.Errorf("offsets %d and %d arrived as one", offset, other)
		}
		seen[got.Offset] = offset
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &Frame{
			Header: Header{
				Kind:        Kind(rapid.IntRange(int(Hello), int(last)).Draw(rt, "kind")),
				Flags:       rapid.Uint8().Draw(rt, "flags"),
				Run:         rapid.Uint64().Draw(rt, "run"),
				Incarnation: rapid.Uint64().Draw(rt, "incarnation"),
				Step:        rapid.Int64().Draw(rt, "step"),
				Offset:      rapid.Uint64().Draw(rt, "offset"),
				Weight:      rapid.Int64().Draw(rt, "weight"),
			},
			Rows: rapid.SliceOf(rapid.Int32()).Draw(rt, "rows"),
			Text: rapid.String().Draw(rt, "text"),
		}
		for _, bits := range rapid.SliceOf(rapid.Uint32()).Draw(rt, "values") {
			f.Values = append(f.Values, math.Float32frombits(bits))
		}
		roundTrip(t, f)
	})
}

// The bytes of one frame, so that the format cannot change unnoticed. The
// checksums were computed with another implementation of CRC32C.
func TestGolden(t *testing.T) {
	f := &Frame{
		Header: Header{
			Kind: Push, Flags: 0x11, Outcome: 0x12, Role: 0x13, Run: 0x2122232425262728, Generation: 0x31323334,
			From: 0x41424344, Incarnation: 0x5152535455565758, Request: 0x6162636465666768, Step: 0x7172737475767778,
			Sequence: -2, Block: 0x81828384, Offset: 0x9192939495969798, Size: 0xa1a2a3a4a5a6a7a8, Weight: -3,
			Updates: 0x0102030405060708, Slots: 0x14, Digest: 0xb1b2b3b4b5b6b7b8,
		},
		Rows:   []int32{1, -1},
		Values: []float32{1, -2.5, float32(math.Inf(1))},
		Text:   "née",
	}
	want := strings.Join(strings.Fields(`
		6f70746d 01 02 11 12 13 14 0400 84838281 34333231 44434241
		2827262524232221 5857565554535251 6867666564636261 7877767574737271
		feffffffffffffff 9897969594939291 a8a7a6a5a4a3a2a1 fdffffffffffffff
		0807060504030201 b8b7b6b5b4b3b2b1 0200000000000000 0300000000000000
		11b9a3fe 0efe0e51
		01000000 ffffffff 0000803f 000020c0 0000807f 6ec3a965`), "")
	if got := hex.EncodeToString(encode(t, f)); got != want {
		t.Errorf("the format changed:\n got %s\nwant %s", got, want)
	}
	roundTrip(t, f)
}

func TestKindNames(t *testing.T) {
	seen := make(map[string]bool)
	for k := Hello; k <= last; k++ {
		if name := k.String(); strings.HasPrefix(name, "kind(") || seen[name] {
			t.Errorf("kind %d has no name of its own: %q", uint8(k), name)
		} else {
			seen[name] = true
		}
	}
	if got := Kind(200).String(); got != "kind(200)" {
		t.Errorf("unknown kind reads %q", got)
	}
}

// A view shares the numbers but leaves their memory to the frame it came from; a
// clone shares nothing.
func TestViewAndClone(t *testing.T) {
	var pool Pool
	sent := &Frame{Header: Header{Kind: Push}, Rows: []int32{7}, Values: make([]float32, 2*smallest)}
	f, err := NewDecoder(bytes.NewReader(encode(t, sent)), 0, &pool).Decode()
	if err != nil {
		t.Fatal(err)
	}
	view, clone := f.View(), f.Clone()
	f.Values[0] = 3
	if view.Values[0] != 3 || clone.Values[0] != 0 {
		t.Errorf("values after writing 3 to the frame: view %v, clone %v; want 3, 0", view.Values[0], clone.Values[0])
	}
	view.Release()
	if f.Values == nil || f.mem.released.Load() {
		t.Error("releasing a view released its frame")
	}
	f.Release()
	f.Release()
	if f.Values != nil || f.Rows != nil {
		t.Error("a released frame still shows its memory")
	}
}
