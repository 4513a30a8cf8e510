package data

import (
	"encoding/json"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"optimus/data/audio"
	"optimus/data/source"
	"optimus/internal/shared"
)

// badCase is what is right to do with a file, as expected.json says it.
type badCase struct {
	Expect   string
	MustName []string `json:"must_name"`

	AcceptError         bool `json:"accept_error"`
	AcceptDecode        bool `json:"accept_decode"`
	AcceptDecodeRecords *int `json:"accept_decode_records"`
	AcceptDecodeSamples *int `json:"accept_decode_samples"`
	AcceptDecodeLines   *int `json:"accept_decode_lines"`
	AcceptPairs         *int `json:"accept_pairs"`

	Width, Height int
	Pixels        []json.RawMessage
	Labels        []byte
	Records       int
	Images        int
	Classes       []string
	Rate, Samples int
	PeakRatio     float64 `json:"peak_ratio"`
	Lines, Tokens int
	Pairs         int
	FirstToken    string `json:"first_token"`
	Transcript    string

	// Words for people.
	Why, Note, Prefer string
	Bytes             int
}

// outcome is what the readers did with a file.
type outcome struct {
	err           error
	labels        []byte
	records       int
	picture       *raster
	sound         *audio.Sound
	classes       []string
	images        int
	lines, tokens int
	words         []string
	pairs         int
	transcript    string
}

// TestBadFiles does what expected.json says with each of the files that were made for
// it. A case that this test does not know is a failure.
func TestBadFiles(t *testing.T) {
	root := shared.Dir(t, "bad")
	var cases map[string]badCase
	d := json.NewDecoder(strings.NewReader(read(t, filepath.Join(root, "expected.json"))))
	d.DisallowUnknownFields()
	if err := d.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 89 {
		t.Errorf("%d cases, want 89", len(cases))
	}
	spoken := readBadLibrary(t, filepath.Join(root, "librispeech"))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(root, name)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			var o outcome
			switch kind, _, _ := strings.Cut(name, "/"); kind {
			case "cifar10":
				o = readBadCIFAR10(path)
			case "class_folders":
				l, err := listClasses(&faults{}, at(path).Join("train"), doPicture)
				o = outcome{err: err}
				if err == nil {
					o.classes, o.images = l.classes, len(l.files)
				}
			case "images":
				o.picture, o.err = readPicture(at(path), source.Stamp{})
			case "librispeech":
				o = spoken.outcome(path)
			case "mnist":
				o = readBadMNIST(path)
			case "ndsb1":
				s, err := OpenNDSB1(filepath.Dir(filepath.Clean(path)), PictureOptions{})
				o = outcome{err: err}
				if err == nil {
					o.classes, o.images = s.Classes, s.Train.Len()+s.Valid.Len()
				}
			case "text":
				o = readBadText(t, path)
			case "wav":
				o.sound, o.err = readRecording(recordingFile{path: at(path)})
			default:
				t.Fatalf("no reader for %s", kind)
			}
			if strings.Contains(name, "huge") || strings.Contains(name, "overflow") {
				runtime.ReadMemStats(&after)
				if n, d := after.TotalAlloc-before.TotalAlloc, time.Since(start); n > 1<<20 || d > time.Second {
					t.Errorf("%d bytes and %v to refuse it", n, d)
				}
			}
			c.compare(t, o)
		})
	}
}

// compare holds an outcome to the case.
func (c badCase) compare(t *testing.T, o outcome) {
	if o.err != nil {
		if c.Expect != "error" && !c.AcceptError {
			t.Fatalf("%v; want %s", o.err, c.Expect)
		}
		wantError(t, o.err, KindOf(o.err), c.MustName...)
		if len(c.MustName) == 0 && !strings.Contains(o.err.Error(), filepath.Base(t.Name())) {
			t.Errorf("%v does not name the file", o.err)
		}
		if KindOf(o.err) == "" {
			t.Errorf("%v is of no kind", o.err)
		}
		return
	}
	if c.Prefer == "error" {
		t.Errorf("it was read; an error is better")
	}
	switch c.Expect {
	case "error":
		c.compareAccepted(t, o)
	case "decode":
		if c.Width > 0 {
			c.comparePicture(t, o.picture)
		} else {
			c.compareSound(t, o.sound)
		}
	case "records":
		if o.records != c.Records || c.Labels != nil && !slices.Equal(o.labels, c.Labels) {
			t.Errorf("%d records, labels %v", o.records, o.labels)
		}
	case "listing":
		if o.images != c.Images || !slices.Equal(o.classes, c.Classes) {
			t.Errorf("%d images in classes %v", o.images, o.classes)
		}
	case "lines", "tokens":
		if o.lines != c.Lines && c.Lines > 0 || o.tokens != c.Tokens && c.Tokens > 0 || c.FirstToken != "" && o.words[0] != c.FirstToken {
			t.Errorf("%d lines, %d tokens, words %q", o.lines, o.tokens, o.words)
		}
		for _, word := range o.words {
			if strings.ContainsAny(word, "\r\n\ufeff") {
				t.Errorf("a word is %q", word)
			}
		}
	case "pairs":
		if o.pairs != c.Pairs && (c.AcceptPairs == nil || o.pairs != *c.AcceptPairs) {
			t.Errorf("%d pairs, want %d", o.pairs, c.Pairs)
		}
	case "transcript":
		if o.transcript != c.Transcript {
			t.Errorf("%q, want %q", o.transcript, c.Transcript)
		}
	default:
		t.Errorf("no way to compare %q", c.Expect)
	}
}

// compareAccepted is for files that may be read though an error is right.
func (c badCase) compareAccepted(t *testing.T, o outcome) {
	samples := -1
	if o.sound != nil {
		samples = int(o.sound.Samples)
	}
	switch {
	case c.AcceptDecode:
	case c.AcceptDecodeRecords != nil && o.records == *c.AcceptDecodeRecords:
	case c.AcceptDecodeSamples != nil && samples == *c.AcceptDecodeSamples:
	case c.AcceptDecodeLines != nil && o.lines == *c.AcceptDecodeLines:
	default:
		t.Errorf("%+v; want an error", o)
	}
}

func (c badCase) comparePicture(t *testing.T, r *raster) {
	if r.width != c.Width || r.height != c.Height {
		t.Fatalf("%d×%d, want %d×%d", r.width, r.height, c.Width, c.Height)
	}
	if len(c.Pixels) == 0 {
		t.Error("no pixel to compare")
	}
	for _, raw := range c.Pixels {
		var x, y, tolerance int
		var want [3]int
		if err := json.Unmarshal(raw, &[]any{&x, &y, &want, &tolerance}); err != nil {
			t.Fatal(err)
		}
		for p, v := range r.at(x, y) {
			if v < want[p]-tolerance || v > want[p]+tolerance {
				t.Errorf("pixel %d,%d is %v, want %v ± %d", x, y, r.at(x, y), want, tolerance)
				break
			}
		}
	}
	for _, side := range []int{1, 48, 224} { // one pixel, and 700 to 1, too
		if n := len(r.square(side).colour().pixels); n != 3*side*side {
			t.Errorf("%d bytes of a square of %d", n, side)
		}
	}
}

func (c badCase) compareSound(t *testing.T, s *audio.Sound) {
	if int(s.Samples) != c.Samples || s.Rate != c.Rate {
		t.Errorf("%d samples at %d Hz, want %d at %d", s.Samples, s.Rate, c.Samples, c.Rate)
	}
	peak := 0.0
	for _, v := range s.Floats() {
		peak = max(peak, math.Abs(float64(v)))
	}
	if c.PeakRatio > 0 && math.Abs(peak-c.PeakRatio) > 1e-6 {
		t.Errorf("the loudest sample is %v, want %v", peak, c.PeakRatio)
	}
	n := soundFrames(int(s.Samples))
	features := make([]float32, n*soundPitches)
	newWaves().spectrogram(features, s.Floats())
	for _, v := range features {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			t.Fatal("a feature is not finite")
		}
	}
}

func readBadCIFAR10(path string) outcome {
	p := newCIFAR10()
	err := readPictures(at(path), p)
	return outcome{err: err, labels: p.labels, records: len(p.labels)}
}

// readBadMNIST reads one file, and labels together with the 12 good pictures.
func readBadMNIST(path string) (o outcome) {
	if n, err := checkIDX(at(path)); err != nil || strings.Contains(path, "images") {
		return outcome{err: err, records: n}
	}
	p := newMNIST()
	o.err = readDigits(at(filepath.Dir(path)).Join("good-images-idx3-ubyte"), at(path), p, &faults{})
	o.labels, o.records = p.labels, len(p.labels)
	return o
}

// readBadText reads a text as the set does that such a file belongs to.
func readBadText(t *testing.T, path string) (o outcome) {
	base := filepath.Base(path)
	if pair, ok := strings.CutSuffix(path, ".{en,de}"); ok {
		return readBadPairs(pair)
	}
	if stem, ok := strings.CutSuffix(path, "{,.valid}.txt"); ok {
		lex := newLexicon()
		_, err := readTokens(stem+".txt", []byte(read(t, stem+".txt")), func(word string) (int32, error) { return lex.add(word), nil })
		if KindOf(err) != Empty { // so few words
			t.Fatal(err)
		}
		_, o.err = readTokens(stem+".valid.txt", []byte(read(t, stem+".valid.txt")), lex.known)
		return o
	}
	var text []byte
	switch {
	case base == "text8.zip":
		_, _, o.err = readText8(at(path))
		return o
	case strings.HasPrefix(base, "text8"):
		if text, o.err = readAll(opText8, at(path), 1<<20, doText8); o.err == nil {
			lex, tokens := text8Words(text)
			o.tokens, o.words = len(tokens), lex.words
		}
		return o
	case base == "invalid_utf8.de":
		_, o.err = readAll(opWMT17, at(path), 1<<20, doWMT17)
		return o
	}
	s, lex := &sentences{}, newLexicon()
	o.err = readText(opMR, at(path), 0, mrWords, lex, s)
	o.lines, o.tokens, o.words = s.len(), len(s.tokens), lex.words
	if _, err := readAll(opPTB, at(path), 1<<20, doPTB); (err == nil) != (o.err == nil) && base != "rt_mixed.pos" { // that is no UTF-8
		t.Errorf("as PTB: %v; as MR: %v", err, o.err)
	}
	return o
}

func readBadPairs(base string) (o outcome) {
	var p parallel
	if o.err = p.read(at(base)); o.err != nil {
		return o
	}
	s, err := newWMT17(at(base), "pairs", [2]parallel{p, p}, PairOptions{})
	if err != nil {
		return outcome{err: err}
	}
	o.pairs = s.Train.Len()
	return o
}

// badLibrary is what became of the recordings.
type badLibrary struct {
	*library
	texts map[string]string
}

func readBadLibrary(t *testing.T, dir string) *badLibrary {
	l := &badLibrary{&library{faults: &faults{op: opSpeech, limit: unlimited}, dir: at(dir)}, map[string]string{}}
	if err := l.walk(at(dir)); err != nil {
		t.Fatal(err)
	}
	if err := l.verify(); err != nil {
		t.Fatal(err)
	}
	for i, file := range l.files {
		for _, letter := range l.letters.at(i) {
			l.texts[file.path.String()] += alphabet[letter-1 : letter]
		}
	}
	return l
}

// outcome is that of one file: the fault that names it, or else its sound.
func (l *badLibrary) outcome(path string) (o outcome) {
	name := strings.TrimSuffix(filepath.Base(path), ".flac")
	for _, err := range l.faults.list {
		missing := strings.HasSuffix(path, speechList) && KindOf(err) == NotFound && strings.Contains(err.Error(), filepath.Base(path))
		if missing || strings.Contains(err.Error(), name) && !strings.HasSuffix(path, speechList) {
			o.err = err
		}
	}
	o.transcript = l.texts[path]
	if sound, err := readRecording(recordingFile{path: at(path)}); err == nil {
		o.sound = sound
		if int(sound.Samples) < soundWindow { // it decodes, and no set takes it
			if KindOf(o.err) != Empty {
				o.err = &Error{Detail: "a recording without a window was taken"}
				return o
			}
			o.err = nil
		}
	}
	return o
}
