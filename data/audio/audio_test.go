package audio

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const longest = 1 << 20

func load(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "flac", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Streams of the reference encoder and some that were written bit by bit, each with
// the samples that the reference has for it (benchmarks/golden/data/flac.py).
func TestFLACIsThatOfTheReference(t *testing.T) {
	var want map[string]struct {
		Rate, Channels, Bits int
		Samples              int64
		SHA256               string
	}
	if err := json.Unmarshal(load(t, "flac.json"), &want); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "flac", "*.flac"))
	if err != nil || len(files) != len(want) || len(want) < 30 {
		t.Fatalf("%d files, %d rows: %v", len(files), len(want), err)
	}
	for name, w := range want {
		s, err := Decode(load(t, name), longest)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		h := sha256.New()
		for _, v := range s.Data {
			h.Write(binary.LittleEndian.AppendUint32(nil, uint32(v)))
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != w.SHA256 || s.Info != (Info{"FLAC", w.Rate, w.Channels, w.Bits, w.Samples}) {
			t.Errorf("%s: %+v, sha256 %s; want %+v", name, s.Info, got, w)
		}
	}
}

// A stream that is cut anywhere, or has a bit flipped behind its head, is never taken
// for a whole one.
func TestFLACDamage(t *testing.T) {
	whole := load(t, "wasted.flac")
	for n := range whole {
		_, err := Decode(whole[:n], longest)
		if err == nil {
			t.Fatalf("cut to %d of %d bytes, it decodes", n, len(whole))
		}
		if n > 12 && !errors.Is(err, ErrTruncated) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	_, part, err := measure(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	for bit := part.from * 8; bit < part.to*8; bit++ {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := Decode(b, longest); err == nil {
			t.Fatalf("bit %d is flipped, and it decodes", bit)
		}
	}
	b := bytes.Clone(whole)
	b[30] ^= 1
	if _, err := Decode(b, longest); err == nil || !strings.Contains(err.Error(), "MD5") {
		t.Errorf("another MD5: %v", err)
	}
	if _, err := Decode(whole, 1499); err == nil || !strings.Contains(err.Error(), "1499") {
		t.Errorf("more samples than are allowed: %v", err)
	}
	piped := load(t, "piped.flac")
	if _, err := Decode(piped, 900); err == nil || !strings.Contains(err.Error(), "900") {
		t.Errorf("more samples than are allowed, and its head says none: %v", err)
	}
}

func TestEncodeFLAC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(rapid.Int16(), 1, 50).Draw(t, "samples")
		samples = slices.Repeat(samples, rapid.IntRange(1, 300).Draw(t, "times"))
		b := EncodeFLAC(16000, samples)
		info, err := Measure(bytes.NewReader(b[:42]), int64(len(b)))
		s, err2 := Decode(b, longest)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if info != s.Info || info != (Info{"FLAC", 16000, 1, 16, int64(len(samples))}) {
			t.Fatalf("%+v, %+v", info, s.Info)
		}
		for i, v := range s.Data {
			if int32(samples[i]) != v {
				t.Fatalf("sample %d is %d, want %d", i, v, samples[i])
			}
		}
	})
}

// wave writes chunks: name and content in turn.
func wave(chunks ...string) []byte {
	var b []byte
	for i := 0; i < len(chunks); i += 2 {
		b = append(b, chunks[i]...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(chunks[i+1])))
		b = append(b, chunks[i+1]...)
		if len(chunks[i+1])%2 == 1 {
			b = append(b, 0)
		}
	}
	head := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(b)+4))
	return append(append(head, "WAVE"...), b...)
}

func waveFormat(code, channels, rate, bits int) string {
	b := binary.LittleEndian.AppendUint16(nil, uint16(code))
	b = binary.LittleEndian.AppendUint16(b, uint16(channels))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate*channels*bits/8))
	b = binary.LittleEndian.AppendUint16(b, uint16(channels*bits/8))
	return string(binary.LittleEndian.AppendUint16(b, uint16(bits)))
}

func TestWAVE(t *testing.T) {
	for _, c := range []struct {
		name string
		file []byte
		want []int32
		say  string
	}{
		{"16 bits", wave("fmt ", waveFormat(1, 1, 8000, 16), "data", "\x01\x00\xff\xff\x00\x80"), []int32{1, -1, -32768}, ""},
		{"8 bits", wave("fmt ", waveFormat(1, 1, 8000, 8), "data", "\x00\x80\xff"), []int32{-128, 0, 127}, ""},
		{"24 bits", wave("fmt ", waveFormat(1, 1, 8000, 24), "data", "\x01\x02\x83\xff\xff\x7f"), []int32{-8191487, 8388607}, ""},
		{"32 bits", wave("fmt ", waveFormat(1, 1, 8000, 32), "data", "\x01\x00\x00\x80"), []int32{-1<<31 + 1}, ""},
		{"stereo", wave("fmt ", waveFormat(1, 2, 8000, 8), "data", "\x81\x82\x83\x84"), []int32{1, 2, 3, 4}, ""},
		{"chunks", wave("LIST", "odd", "fmt ", waveFormat(1, 1, 8000, 8), "fact", "four", "data", "\x81"), []int32{1}, ""},
		{"behind a tag", append([]byte("ID3\x04\x00\x00\x00\x00\x00\x03..."), wave("fmt ", waveFormat(1, 1, 8000, 8), "data", "\x81")...), []int32{1}, ""},
		{"mu-law", wave("fmt ", waveFormat(7, 1, 8000, 8), "data", "\x81"), nil, "format code is 7 (mu-law), at 8000 Hz"},
		{"float", wave("fmt ", waveFormat(3, 1, 8000, 32), "data", "\x81"), nil, "3 (floating point)"},
		{"12 bits", wave("fmt ", waveFormat(1, 2, 8000, 12), "data", "\x81"), nil, "12 bits"},
		{"no format", wave("data", "\x81"), nil, "no fmt chunk"},
		{"short format", wave("fmt ", "\x01\x00", "data", "\x81"), nil, "2 bytes"},
		{"no data", wave("fmt ", waveFormat(1, 1, 8000, 8)), nil, "no data chunk"},
		{"half a sample", wave("fmt ", waveFormat(1, 1, 8000, 16), "data", "abc"), nil, "3 bytes"},
		{"cut", wave("fmt ", waveFormat(1, 1, 8000, 8), "data", "abcdefgh")[:50], nil, "6 of 8 bytes"},
		{"Ogg", []byte("OggS this is FLAC within Ogg"), nil, "an Ogg file"},
		{"markup", []byte("<html>"), nil, "a web page"},
		{"nothing", nil, nil, "no known format"},
		{"tag alone", []byte("ID3\x04\x00\x00\x00\x00\x00\x05....."), nil, "ID3"},
	} {
		s, err := Decode(c.file, longest)
		if c.say != "" {
			if err == nil || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%s: %v, want %q", c.name, err, c.say)
			}
			continue
		}
		if err != nil || !slices.Equal(s.Data, c.want) || s.Format != "WAVE" || s.Rate != 8000 {
			t.Errorf("%s: %+v, %v; want %v", c.name, s, err, c.want)
		}
	}
	s, err := Decode(wave("fmt ", waveFormat(1, 1, 8000, 24), "data", "\x00\x00\xc0\xff\xff\x7f"), longest)
	if err != nil || !slices.Equal(s.Floats(), []float32{-0.5, 1 - 1.0/(1<<23)}) {
		t.Errorf("%v, %v", s, err)
	}
}

// No bytes may do harm; what is decoded is as long as it says, and no longer than
// allowed; and measuring does not contradict decoding.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"one-sample.flac", "escaped.flac", "escaped-wide.flac", "linear.flac", "silence.flac", "block-16.flac", "tagged.flac"} {
		f.Add(load(f, name))
	}
	f.Add(wave("fmt ", waveFormat(1, 2, 8000, 8), "LIST", "x", "data", "\x81\x82\x83\x84"))
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 1 << 16
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		defer func() { // eight channels as they are decoded and, growing, as they are kept
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20+64*uint64(len(b)) {
				t.Errorf("%d bytes allocated for %d", n, len(b))
			}
		}()
		info, measured := Measure(bytes.NewReader(b), int64(len(b)))
		s, err := Decode(b, most)
		if err != nil {
			return
		}
		if measured != nil || info.Samples >= 0 && info.Samples != s.Samples {
			t.Errorf("measured %+v, %v; decoded %+v", info, measured, s.Info)
		}
		if s.Samples > most || int64(len(s.Data)) != s.Samples*int64(s.Channels) {
			t.Errorf("%d values of %+v", len(s.Data), s.Info)
		}
		for _, v := range s.Floats() {
			if v < -1 || v >= 1.0000001 {
				t.Errorf("a sample is %v", v)
			}
		}
	})
}
