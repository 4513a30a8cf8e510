package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

func testFrame() *Frame {
	return &Frame{
		Header: Header{Kind: Push, Block: 3, Offset: 1 << 40, Size: 5, Step: 9},
		Rows:   []int32{4, 2},
		Values: []float32{1, 2, 3, 4, 5},
		Text:   "why",
	}
}

// Whatever else connects is told apart by its first bytes, even when it never
// sends a header's worth of them.
func TestStrayConnection(t *testing.T) {
	for name, greeting := range map[string]string{
		"http": "GET / HTTP/1.1\r\n\r\n",
		"tls":  "\x16\x03\x01\x02\x00\x01",
		"zero": "\x00\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			defer here.Close()
			go io.WriteString(there, greeting) // and then silence
			_, err := NewDecoder(here, 0, nil).Decode()
			if !errors.Is(err, ErrMagic) {
				t.Errorf("Decode of %q: %v, want %v", greeting, err, ErrMagic)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	b := encode(t, testFrame())
	b[atVersion] = 2
	_, err := decode(b)
	if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("Decode of version 2: %v", err)
	}
}

// Each single flipped bit of a frame is noticed.
func TestDamage(t *testing.T) {
	good := encode(t, testFrame())
	for i := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			if f, err := decode(b); err == nil {
				t.Fatalf("bit %d of byte %d flipped: decoded as %+v", bit, i, f)
			} else if i >= atKind && !errors.Is(err, ErrChecksum) {
				t.Fatalf("bit %d of byte %d flipped: %v, want %v", bit, i, err, ErrChecksum)
			}
		}
	}
}

// A frame without a sum over its body is read as it is; its header is covered
// none the less.
func TestNoBodySum(t *testing.T) {
	enc := NewEncoder(0)
	enc.NoBodySum = true
	var out bytes.Buffer
	if _, err := enc.WriteTo(&out, testFrame()); err != nil {
		t.Fatal(err)
	}
	b := out.Bytes()
	b[HeaderSize] ^= 1 // the first row: 4 becomes 5
	f, err := decode(b)
	if err != nil || f.Rows[0] != 5 || f.Values[4] != 5 {
		t.Fatalf("Decode: %+v, %v", f, err)
	}
	b[atBodySum] ^= 1
	if _, err := decode(b); !errors.Is(err, ErrChecksum) {
		t.Errorf("Decode of a damaged header: %v", err)
	}
	if sent(noSum) == noSum {
		t.Error("a body whose sum is 0 would go unchecked")
	}
}

// A stream that ends is told apart by where it ends.
func TestEnd(t *testing.T) {
	b := encode(t, testFrame())
	if _, err := decode(nil); err != io.EOF {
		t.Errorf("end between frames: %v, want io.EOF itself", err)
	}
	for n := 1; n < len(b); n++ {
		if _, err := decode(b[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("end after %d of %d bytes: %v, want %v", n, len(b), err, io.ErrUnexpectedEOF)
		}
	}
}

// Frames are found in a stream however it is cut, one after the other.
func TestStream(t *testing.T) {
	var stream bytes.Buffer
	enc := NewEncoder(0)
	const frames = 5
	for i := range frames {
		f := testFrame()
		f.Step = int64(i)
		f.Values = make([]float32, 100_000*i)
		if _, err := enc.WriteTo(&stream, f); err != nil {
			t.Fatal(err)
		}
	}
	all := stream.Bytes()
	for name, cut := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader} {
		d := NewDecoder(cut(bytes.NewReader(all)), 0, nil)
		for i := range frames {
			f, err := d.Decode()
			if err != nil {
				t.Fatalf("%s: frame %d: %v", name, i, err)
			}
			if f.Step != int64(i) || len(f.Values) != 100_000*i || f.Text != "why" {
				t.Errorf("%s: frame %d came as step %d with %d values, text %q", name, i, f.Step, len(f.Values), f.Text)
			}
		}
		if _, err := d.Decode(); err != io.EOF {
			t.Errorf("%s: after the last frame: %v, want io.EOF", name, err)
		}
	}
}

// The limit holds on both sides, to the byte, and names itself.
func TestLimit(t *testing.T) {
	f := testFrame()
	b, n := encode(t, f), f.Length()
	var out bytes.Buffer
	if _, err := NewEncoder(n-1).WriteTo(&out, f); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "MaxFrame") {
		t.Errorf("encode above the limit: %v", err)
	}
	if out.Len() != 0 {
		t.Errorf("a refused frame left %d bytes", out.Len())
	}
	if _, err := NewDecoder(bytes.NewReader(b), n-1, nil).Decode(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("decode above the limit: %v", err)
	}
	if _, err := NewEncoder(n).WriteTo(&out, f); err != nil {
		t.Errorf("encode at the limit: %v", err)
	}
	if _, err := NewDecoder(bytes.NewReader(b), n, nil).Decode(); err != nil {
		t.Errorf("decode at the limit: %v", err)
	}
}

// A header with absurd counts and a right checksum is refused before anything is
// allocated for it.
func TestAbsurdCounts(t *testing.T) {
	for _, count := range []uint64{1 << 28, 1 << 32, 1 << 62, 1<<63 - 1, 1<<64 - 1} {
		for _, at := range []int{atRows, atValues} {
			b := encode(t, &Frame{Header: Header{Kind: Pull}})
			binary.LittleEndian.PutUint64(b[at:], count)
			binary.LittleEndian.PutUint32(b[atHeaderSum:], crc32.Checksum(b[:atHeaderSum], sumTable()))
			if _, err := NewDecoder(bytes.NewReader(b), 0, nil).Decode(); !errors.Is(err, ErrTooLarge) {
				t.Errorf("count %d at byte %d: %v, want %v", count, at, err, ErrTooLarge)
			}
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, f := range map[string]*Frame{
		"no kind":      {},
		"unknown kind": {Header: Header{Kind: last + 1}},
		"long text":    {Header: Header{Kind: Hello}, Text: strings.Repeat("x", MaxText+1)},
	} {
		if _, err := NewEncoder(0).Encode(f); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, ErrInvalid)
		}
	}
	roundTrip(t, &Frame{Header: Header{Kind: Hello}, Text: strings.Repeat("x", MaxText)})
}

// The path of big-endian machines, driven here: it puts each word on the wire in
// the opposite of this machine's order and takes it back.
func TestSwap(t *testing.T) {
	f := testFrame()
	enc := NewEncoder(0)
	enc.swap = true
	var out bytes.Buffer
	if _, err := enc.WriteTo(&out, f); err != nil {
		t.Fatal(err)
	}
	if f.Rows[0] != 4 || f.Values[0] != 1 {
		t.Error("encoding changed the frame")
	}
	b := out.Bytes()
	opposite := binary.ByteOrder(binary.BigEndian)
	if !littleEndian() {
		opposite = binary.LittleEndian
	}
	if got := opposite.Uint32(b[HeaderSize:]); got != 4 {
		t.Errorf("first row is %d in the opposite order, want 4", got)
	}
	dec := NewDecoder(bytes.NewReader(b), 0, nil)
	dec.swap = true
	got, err := dec.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if got.Rows[1] != 2 || got.Values[4] != 5 {
		t.Errorf("came back as rows %v, values %v", got.Rows, got.Values)
	}
}

// Decode of any bytes gives a frame that encodes to what was read, or an error.
func FuzzDecode(f *testing.F) {
	f.Add(encode(f, testFrame()))
	f.Add(encode(f, &Frame{Header: Header{Kind: Pull}}))
	f.Add([]byte("GET / HTTP/1.1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Right checksums, so that the parser behind them is reached.
		if len(b) >= HeaderSize {
			binary.LittleEndian.PutUint32(b[atBodySum:], sent(crc32.Checksum(b[HeaderSize:], sumTable())))
			binary.LittleEndian.PutUint32(b[atHeaderSum:], crc32.Checksum(b[:atHeaderSum], sumTable()))
		}
		got, err := NewDecoder(bytes.NewReader(b), 1<<16, nil).Decode()
		if err != nil {
			return
		}
		if again := encode(t, got); !bytes.HasPrefix(b, again) {
			t.Errorf("decoded and encoded again, the bytes differ:\n%x\n%x", b, again)
		}
	})
}
