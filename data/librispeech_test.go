package data

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"optimus/data/audio"
	"optimus/internal/rng"
	"optimus/internal/shared"
)

// library writes recordings: folder, name and text in turn.
func putRecordings(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 3 {
		folder := filepath.Join(dir, files[i])
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		samples := make([]int16, 3000+100*i)
		for j := range samples {
			samples[j] = int16(8000 * math.Sin(2*math.Pi*1000*float64(j)/soundRate))
		}
		if err := os.WriteFile(filepath.Join(folder, files[i+1]+".flac"), audio.EncodeFLAC(soundRate, samples), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, files[i+1]+speechList), []byte(files[i+1]+" "+files[i+2]+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpenLibriSpeech(t *testing.T) {
	dir := putRecordings(t, "train-x/1/2", "1-2-0", "A CAT'S", "train-x/3/4", "3-4-0", "OH", "dev-x/5/6", "5-6-0", "NO", "test-x/7/8", "7-8-0", "LEFT OUT")
	s, err := OpenLibriSpeech(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Train.Len() != 2 || s.Valid.Len() != 1 || len(s.Vocabulary) != 29 || s.Pitches != 161 || s.Letters != 7 || s.SequenceLength != (3600-320)/160+1 {
		t.Errorf("%d + %d recordings, %d letters, %d pitches, %d letters, %d steps", s.Train.Len(), s.Valid.Len(), len(s.Vocabulary), s.Pitches, s.Letters, s.SequenceLength)
	}
	var b Batch
	if err := s.Train.Fill([]int{1, 0}, &b); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.Inputs[0].I, []int32{19, 17}) || !slices.Equal(b.Inputs[2].I, []int32{17, 10, 0, 0, 0, 0, 0, 3, 1, 5, 3, 22, 2, 21}) || !slices.Equal(b.Inputs[3].I, []int32{2, 7}) {
		t.Errorf("lengths %v, letters %v, %v", b.Inputs[0].I, b.Inputs[2].I, b.Inputs[3].I)
	}
	x := b.Inputs[1].F
	if loudest := slices.Index(x[:161], slices.Max(x[:161])); loudest != 20 || len(x) != 2*19*161 {
		t.Errorf("1000 Hz are at %d of %d values", loudest, len(x))
	}
	sum, squares := 0.0, 0.0
	for _, v := range x[:19*161] {
		sum += float64(v) / (19 * 161)
		squares += float64(v) * float64(v) / (19 * 161)
	}
	if math.Abs(sum) > 1e-5 || math.Abs(squares-1) > 1e-4 {
		t.Errorf("mean %v, mean square %v", sum, squares)
	}
	if slices.ContainsFunc(x[(19+17)*161:], func(v float32) bool { return v != 0 }) {
		t.Error("a recording goes on behind its end")
	}
	// Without dev-* a quarter of the speakers is held back.
	if err := os.Rename(filepath.Join(dir, "dev-x"), filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenLibriSpeech(dir, Options{}); err != nil || s.Train.Len() != 3 || s.Valid.Len() != 1 {
		t.Errorf("%d + %d recordings: %v", s.Train.Len(), s.Valid.Len(), err)
	}
}

// TestOpenLibriSpeechReal decodes all recordings; each has an MD5 that is checked.
func TestOpenLibriSpeechReal(t *testing.T) {
	s, err := OpenLibriSpeech(shared.Dir(t, "sets", "librispeech"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, seconds := s.Train.Len()+s.Valid.Len(), 0.0
	for _, split := range []Split{s.Train, s.Valid} {
		from := split.(*speechSplit)
		for _, id := range from.ids {
			samples, err := from.read(int(id))
			if err != nil {
				t.Fatal(err)
			}
			seconds += float64(len(samples)) / soundRate
		}
	}
	if n != 56 || math.Abs(seconds-298) > 1 {
		t.Errorf("%d recordings, %v s; want 56, 298 s", n, seconds)
	}
}

func TestLibriSpeechRefuses(t *testing.T) {
	change := func(what string, f func(dir string)) string {
		dir := putRecordings(t, "train-x/1/2", what, "A CAT", "dev-x/1/2", "d", "B")
		f(filepath.Join(dir, "train-x/1/2"))
		return dir
	}
	write := func(name string, b []byte) func(dir string) {
		return func(dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		dir  string
		kind Kind
		part string
	}{
		"nothing":   {t.TempDir(), Empty, "0 recordings"},
		"no file":   {change("a", write("a.trans.txt", []byte("a A CAT\nb TEXT\n"))), NotFound, "b.flac"},
		"no line":   {change("a", write("b.flac", audio.EncodeFLAC(soundRate, make([]int16, 999)))), NotFound, "b.flac"},
		"twice":     {change("a", write("a.trans.txt", []byte("a A CAT\na A CAT\n"))), NotFound, "line 2"},
		"two forms": {change("a", write("a.wav", []byte("RIFF"))), BadFormat, "a.flac as well"},
		"latin-1":   {change("a", write("a.trans.txt", []byte("a CAF\xc9\n"))), BadFormat, "UTF-8"},
		"long text": {change("a", write("a.trans.txt", []byte("a TOO MANY LETTERS FOR THIS\n"))), BadFormat, "17 windows"},
		"no window": {change("a", write("a.flac", nil)), Empty, "0 bytes"},
		"no text":   {change("a", write("a.trans.txt", []byte("a\n"))), BadFormat, "0 letters"},
		"digits":    {change("a", write("a.trans.txt", []byte("a ROOM 101\n"))), BadFormat, "'1'"},
		"wave":      {change("a", write("a.flac", []byte("RIFF"+strings.Repeat("x", 60)))), BadFormat, "RIFF file of another kind"},
		"8 kHz":     {change("a", write("a.flac", audio.EncodeFLAC(8000, make([]int16, 999)))), BadFormat, "8000 Hz"},
		"too short": {change("a", write("a.flac", audio.EncodeFLAC(soundRate, make([]int16, 9)))), Empty, "9 samples"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenLibriSpeech(c.dir, Options{})
			wantError(t, err, c.kind, c.part)
		})
	}
	cut := audio.EncodeFLAC(soundRate, make([]int16, 2000))
	s, err := OpenLibriSpeech(change("a", write("a.flac", cut[:2000])), Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, s.Train.Fill([]int{0}, &Batch{}), Truncated, "a.flac", "ends too early")
}

// TestPower compares the folded transform with the plain one.
func TestPower(t *testing.T) {
	x := make([]float32, soundWindow)
	for i := range x {
		x[i] = float32(rng.NewKey(1).Normal(uint64(i)))
	}
	w := newWaves()
	var f folded
	f.fold(x, w.hann)
	for k := range soundPitches {
		re, im := 0.0, 0.0
		for i, v := range x {
			sin, cos := math.Sincos(2 * math.Pi * float64(k*i) / soundWindow)
			re += float64(v) * w.hann[i] * cos
			im += float64(v) * w.hann[i] * sin
		}
		if got, want := f.power(w, k), re*re+im*im; math.Abs(got-want) > 1e-9*(1+want) {
			t.Errorf("pitch %d: power %v, want %v", k, got, want)
		}
	}
}
