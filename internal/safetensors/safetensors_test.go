package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/internal/safetensors"
)

// file assembles a file from a header's text and data bytes.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func open(b []byte) (*safetensors.Reader, error) {
	return safetensors.Open(bytes.NewReader(b), int64(len(b)), "x.safetensors")
}

func TestBO21_BadFilesAreErrorsThatNameFileAndTensor(t *testing.T) {
	entry := func(name, dtype, shape, offsets string) string {
		return fmt.Sprintf(`%q:{"dtype":%q,"shape":%s,"data_offsets":%s}`, name, dtype, shape, offsets)
	}
	one := func(dtype, shape, offsets string) string { return "{" + entry("w", dtype, shape, offsets) + "}" }
	long := binary.LittleEndian.AppendUint64(nil, 1<<63)
	for _, c := range []struct {
		name, want, tensor string
		file               []byte
	}{
		{"end beyond the file", "beyond", "w", file(one("F32", "[4]", "[0,16]"), 8)},
		{"end before begin", "not a range", "w", file(one("F32", "[1]", "[8,4]"), 8)},
		{"shape and range disagree", "needs 16", "w", file(one("F32", "[4]", "[0,8]"), 8)},
		{"overlap", "overlaps", "v", file("{"+entry("w", "F32", "[2]", "[0,8]")+","+entry("v", "F32", "[2]", "[4,12]")+"}", 12)},
		{"hole", "belong to no tensor", "v", file("{"+entry("w", "F32", "[1]", "[0,4]")+","+entry("v", "F32", "[1]", "[8,12]")+"}", 12)},
		{"negative dimension", "holds -1", "w", file(one("F32", "[-1]", "[0,4]"), 4)},
		{"fractional dimension", "holds 1.5", "w", file(one("F32", "[1.5]", "[0,4]"), 4)},
		{"product over 2^64", "overflows", "w", file(one("U8", "[4294967296,4294967296,2]", "[0,0]"), 0)},
		{"product that wraps to its range", "overflows", "w", file(one("U8", "[4294967296,4294967296]", "[0,0]"), 0)},
		{"header length 2^63", "claims 9223372036854775808", "", append(long, '{', '}')},
		{"duplicate name", "occurs twice", "w", file("{"+entry("w", "U8", "[1]", "[0,1]")+","+entry("w", "U8", "[1]", "[1,2]")+"}", 2)},
		{"duplicate name, escaped", "occurs twice", "w", file("{"+entry("w", "U8", "[1]", "[0,1]")+`,"\u0077":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2)},
		{"bytes after the last", "belong to no tensor", "w", file(one("F32", "[1]", "[0,4]"), 5)},
		{"header beyond the file", "has 2 left", "", append(binary.LittleEndian.AppendUint64(nil, 99), '{', '}')},
		{"no header", "too few", "", []byte{1, 2, 3}},
		{"unknown type", "unknown dtype", "w", file(one("F31", "[1]", "[0,4]"), 4)},
		{"unknown field", "unknown field", "w", file(`{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"x":1}}`, 0)},
		{"missing field", "missing", "w", file(`{"w":{"dtype":"U8","shape":[0]}}`, 0)},
		{"field twice", "shape occurs twice", "w", file(`{"w":{"shape":[0],"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0)},
		{"three offsets", "more than 2", "w", file(one("U8", "[0]", "[0,0,0]"), 0)},
		{"rank 65", "more than 64", "w", file(one("U8", "["+strings.Repeat("1,", 64)+"1]", "[0,1]"), 1)},
		{"metadata not text", "not a string", "__metadata__", file(`{"__metadata__":{"a":1}}`, 0)},
		{"metadata key twice", "occurs twice", "__metadata__", file(`{"__metadata__":{"a":"1","a":"2"}}`, 0)},
		{"not an object", `begin with "{"`, "", file(`[1]`, 0)},
		{"cut JSON", "not JSON", "w", file(`{"w":{"dtype"`, 0)},
		{"text after it", "other than spaces", "", file(`{}x`, 0)},
		{"deep nesting", "where", "w", file(`{"w":`+strings.Repeat("[", 1<<20), 0)},
		{"not UTF-8", "UTF-8", "", file("{\"\xff\":1}", 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(c.file)
			var e *safetensors.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an Error", err)
			}
			if e.File != "x.safetensors" || e.Tensor != c.tensor || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q (tensor %q), want one line with %q about tensor %q", err, e.Tensor, c.want, c.tensor)
			}
			if e.Kind() != "corrupt" {
				t.Errorf("kind %q", e.Kind())
			}
		})
	}
}

// write makes a file of F32 tensors from values.
func write(t testing.TB, tensors []safetensors.Tensor, values [][]float32, metadata map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := safetensors.NewWriter(&buf, "x.safetensors", tensors, metadata)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := w.WriteFloat32(v); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestBO21_FileCutAnywhereIsAnError(t *testing.T) {
	x := make([]float32, 4000)
	b := write(t, []safetensors.Tensor{{Name: "w", DType: safetensors.F32, Shape: []int64{4000}}}, [][]float32{x}, nil)
	for n := 0; n < len(b); n++ {
		if n > 200 && n%1024 != 0 && n < len(b)-2 {
			continue
		}
		if _, err := open(b[:n]); err == nil {
			t.Fatalf("a file cut to %d of %d bytes was opened", n, len(b))
		}
	}
	if _, err := open(b); err != nil {
		t.Fatal(err)
	}
}

func TestBO21_BadFilesCostNoMemory(t *testing.T) {
	// A header that claims 90 MB in a file of 10 bytes, and shapes of exabytes.
	claims := append(binary.LittleEndian.AppendUint64(nil, 90_000_000), '{', '}')
	huge := file(`{"w":{"dtype":"F64","shape":[1152921504606846975],"data_offsets":[0,9223372036854775800]}}`, 8)
	for _, b := range [][]byte{claims, huge} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := open(b); err == nil {
			t.Fatal("opened")
		}
		runtime.ReadMemStats(&after)
		got := after.TotalAlloc - before.TotalAlloc
		if got > 64<<10 {
			t.Errorf("refusing a file of %d bytes allocated %d bytes", len(b), got)
		}
	}
}

func TestBO21_ManyTinyTensorsRoundTripOrAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("1.3 million tensors")
	}
	const n = 1_300_000
	tensors := make([]safetensors.Tensor, n)
	shape := []int64{1}
	for i := range tensors {
		tensors[i] = safetensors.Tensor{Name: fmt.Sprintf("%d@0", i), DType: safetensors.U8, Shape: shape}
	}
	var buf bytes.Buffer
	w, err := safetensors.NewWriter(&buf, "many", tensors, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	r, err := open(buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := r.Lookup("1299999@0"); !ok || got.End != n {
		t.Fatalf("last tensor %+v", got)
	}
	for i := range tensors {
		tensors[i].Name = fmt.Sprintf("model.layers.%d.weight", i)
	}
	if _, err := safetensors.NewWriter(&buf, "many", tensors, nil); err == nil || !strings.Contains(err.Error(), "several files") {
		t.Fatalf("a header over the limit: got %v", err)
	}
}

func TestWriterRefusesWhatReadersRefuse(t *testing.T) {
	u8 := func(name string, shape ...int64) safetensors.Tensor {
		return safetensors.Tensor{Name: name, DType: safetensors.U8, Shape: shape}
	}
	for name, tensors := range map[string][]safetensors.Tensor{
		"declared twice": {u8("a", 1), u8("a", 1)},
		"reserved":       {u8("__metadata__", 1)},
		"negative":       {u8("a", -1)},
		"overflows":      {u8("a", 1<<40, 1<<40)},
		"64-bit offsets": {u8("a", math.MaxInt64/2), u8("b", math.MaxInt64/2)},
		"unknown dtype":  {{Name: "a", DType: "X"}},
		"not UTF-8":      {u8("\xff", 1)},
		"dimensions":     {u8("a", make([]int64, 65)...)},
	} {
		if _, err := safetensors.NewWriter(&bytes.Buffer{}, "f", tensors, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	w, err := safetensors.NewWriter(&bytes.Buffer{}, "f", []safetensors.Tensor{u8("a", 2), u8("b", 2)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("a short file: got %v", err)
	}
	w, _ = safetensors.NewWriter(&bytes.Buffer{}, "f", []safetensors.Tensor{u8("a", 2)}, nil)
	if _, err := w.Write(make([]byte, 3)); err == nil {
		t.Error("more bytes than declared were accepted")
	}
}

// An independent reading of the format: what encoding/json makes of the header.
func TestRoundTripProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.String().Filter(func(s string) bool { return s != "__metadata__" }), 0, 6, rapid.ID).Draw(rt, "names")
		metadata := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(rt, "metadata")
		var tensors []safetensors.Tensor
		var values [][]float32
		for _, name := range names {
			shape := rapid.SliceOfN(rapid.Int64Range(0, 5), 0, 3).Draw(rt, "shape")
			n := int64(1)
			for _, d := range shape {
				n *= d
			}
			v := make([]float32, n)
			for i := range v {
				v[i] = math.Float32frombits(rapid.Uint32().Draw(rt, "bits"))
			}
			tensors = append(tensors, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: shape})
			values = append(values, v)
		}
		b := write(t, tensors, values, metadata)
		if size, err := safetensors.FileSize("x", tensors, metadata); err != nil || size != int64(len(b)) {
			rt.Fatalf("FileSize %d, %v; the file has %d bytes", size, err, len(b))
		}
		r, err := open(b)
		if err != nil {
			rt.Fatal(err)
		}
		if len(metadata) > 0 && !cmp.Equal(metadata, r.Metadata()) {
			rt.Fatal(cmp.Diff(metadata, r.Metadata()))
		}
		var header map[string]json.RawMessage
		n := binary.LittleEndian.Uint64(b)
		if err := json.Unmarshal(b[8:8+n], &header); err != nil || (8+n)%8 != 0 {
			rt.Fatalf("header of %d bytes: %v", n, err)
		}
		for i, name := range names {
			var e struct {
				Shape   []int64 `json:"shape"`
				Offsets []int64 `json:"data_offsets"`
			}
			if err := json.Unmarshal(header[name], &e); err != nil {
				rt.Fatal(err)
			}
			want := safetensors.AppendFloat32(nil, values[i])
			if !bytes.Equal(want, b[8+int(n):][e.Offsets[0]:e.Offsets[1]]) || !cmp.Equal(e.Shape, append([]int64{}, tensors[i].Shape...)) {
				rt.Fatalf("tensor %q lies wrong: %+v", name, e)
			}
			from := rapid.IntRange(0, len(values[i])).Draw(rt, "from")
			to := rapid.IntRange(from, len(values[i])).Draw(rt, "to")
			got := make([]float32, to-from)
			if err := r.ReadFloat32(name, got, int64(from)); err != nil {
				rt.Fatal(err)
			}
			if !bytes.Equal(safetensors.AppendFloat32(nil, got), want[4*from:4*to]) {
				rt.Fatalf("tensor %q [%d:%d) differs", name, from, to)
			}
		}
	})
}

func TestReadsOutsideATensor(t *testing.T) {
	tensors := []safetensors.Tensor{
		{Name: "w", DType: safetensors.F32, Shape: []int64{2}},
		{Name: "n", DType: safetensors.I64, Shape: []int64{1}},
	}
	b := write(t, tensors, [][]float32{{1, 2}, {0, 0}}, nil)
	r, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"beyond":         r.ReadFloat32("w", make([]float32, 2), 1),
		"no such tensor": r.ReadFloat32("x", make([]float32, 1), 0),
		"dtype is I64":   r.ReadFloat32("n", make([]float32, 1), 0),
		"out of range":   r.ReadFloat32("w", make([]float32, 1), math.MaxInt64),
		"-1":             r.ReadAt("w", make([]byte, 1), -1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := r.ReadFloat32("w", nil, 2); err != nil {
		t.Errorf("nothing at the end: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(file(`{}`, 0))
	f.Add(file(`{"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}`, 8))
	f.Add(file(`{"__metadata__":{"a":"b"},"w":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}  `, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := open(b)
		if err != nil {
			return
		}
		// What was accepted can be read whole, and nothing else can.
		total := int64(0)
		for _, x := range r.Tensors() {
			total += x.End - x.Begin
			if err := r.ReadAt(x.Name, make([]byte, x.End-x.Begin), 0); err != nil {
				t.Fatal(err)
			}
			if err := r.ReadAt(x.Name, make([]byte, 1), x.End-x.Begin); err == nil {
				t.Fatal("read beyond a tensor")
			}
		}
		if total != int64(len(b))-r.DataStart() {
			t.Fatalf("tensors have %d bytes, the data %d", total, int64(len(b))-r.DataStart())
		}
	})
}

func Example() {
	var buf bytes.Buffer
	w, err := safetensors.NewWriter(&buf, "a.safetensors", []safetensors.Tensor{
		{Name: "weight", DType: safetensors.F32, Shape: []int64{2, 2}},
	}, map[string]string{"made by": "an example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.WriteFloat32([]float32{1, 2, 3, 4}), w.Close())

	r, err := safetensors.Open(bytes.NewReader(buf.Bytes()), int64(buf.Len()), "a.safetensors")
	if err != nil {
		fmt.Println(err)
		return
	}
	row := make([]float32, 2)
	fmt.Println(r.ReadFloat32("weight", row, 2), row)
	// Output:
	// <nil> <nil>
	// <nil> [3 4]
}
