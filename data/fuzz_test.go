package data

import (
	"bytes"
	"compress/gzip"
	"image"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"optimus/data/audio"
)

// bounded fails if f allocates more than constant bytes and factor for each of size.
// It is for readers that a head might talk into making room.
func bounded(t *testing.T, size int, constant, factor uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	if n, most := after.TotalAlloc-before.TotalAlloc, constant+factor*uint64(size); n > most {
		t.Errorf("%d bytes allocated for %d, want %d at most", n, size, most)
	}
}

func FuzzDecodePicture(f *testing.F) {
	grey := image.NewGray(image.Rect(0, 0, 9, 5))
	for _, encode := range []func(b *bytes.Buffer, img image.Image) error{asJPEG, asPNG} {
		var b bytes.Buffer
		if err := encode(&b, grey); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"))
	f.Add([]byte("\xff\xd8\xff\xc9\x00\x08\x08\x00\x01\x00\x01\x00"))
	f.Add([]byte("<html>"))
	f.Fuzz(func(t *testing.T, content []byte) {
		// Of a JPEG 512 pixels a byte, which a progressive one holds in 12 bytes each. A
		// WebP may have 1<<24 pixels whatever its size.
		constant := uint64(1 << 20)
		if codecOf(content) != nil && bytes.HasPrefix(content, []byte("RIFF")) {
			constant = 16 * webpPixels
		}
		var r *raster
		var err error
		bounded(t, len(content), constant, 32*densest, func() { r, err = decodePicture("f", content) })
		if err != nil {
			wantError(t, err, KindOf(err), "f")
			return
		}
		if len(r.pixels) != r.planes*r.width*r.height || len(r.square(7).pixels) != r.planes*49 {
			t.Errorf("%d bytes of %d×%d×%d", len(r.pixels), r.planes, r.width, r.height)
		}
	})
}

func FuzzIDX(f *testing.F) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte("\x00\x00\x08\x01\x00\x00\x00\x02\x05\x07"))
	w.Close()
	f.Add([]byte("\x00\x00\x08\x01\x00\x00\x00\x02\x05\x07"), false, false)
	f.Add(append([]byte("\x00\x00\x08\x03\x00\x00\x00\x01\x00\x00\x00\x1c\x00\x00\x00\x1c"), make([]byte, mnistArea)...), true, false)
	f.Add([]byte("\x00\x00\x08\x03\xff\xff\xff\xff\x00\x00\x00\x1c\x00\x00\x00\x1c"), true, false)
	f.Add(packed.Bytes(), false, true)
	f.Fuzz(func(t *testing.T, content []byte, images, compressed bool) {
		magic, path, factor := uint32(idxLabels), "f", uint64(1)
		if images {
			magic = idxImages
		}
		if compressed {
			path, factor = "f.gz", deflateMost
		}
		bounded(t, len(content), 1<<20, 2*factor, func() {
			b, err := parseIDX(path, bytes.NewReader(content), int64(len(content)), magic)
			if err != nil {
				wantError(t, err, KindOf(err), path)
			} else if uint64(len(b)) > factor*uint64(len(content)) || len(b) == 0 || images && len(b)%mnistArea != 0 {
				t.Errorf("%d bytes out of %d", len(b), len(content))
			}
		})
	})
}

func FuzzSubmission(f *testing.F) {
	f.Add("image,a,b\n1.jpg,0.5,0.5\n2.jpg,0,1e-3\n")
	f.Add("\ufeffimage,\"a,\n b\"\r\n\"1\"\"\",1\r\n")
	f.Add("image,a\n1,NaN\n")
	f.Add("id,a,a\n")
	f.Add("image,\"\n\"\n1,002\n")
	f.Fuzz(func(t *testing.T, text string) {
		p := newSubmissionParser("f", strings.NewReader(text))
		err := p.head()
		if err == nil {
			err = p.rows()
		}
		if err != nil {
			wantError(t, err, KindOf(err), "f")
			return
		}
		if len(p.Probabilities) != len(p.Classes)*len(p.Images) {
			t.Errorf("%d probabilities of %d classes and %d pictures", len(p.Probabilities), len(p.Classes), len(p.Images))
		}
		// Written and read again it is the same.
		var b bytes.Buffer
		if err := p.Write(&b); err != nil {
			t.Fatal(err)
		}
		again := newSubmissionParser("again", &b)
		if err := again.head(); err != nil {
			t.Fatal(err)
		}
		if err := again.rows(); err != nil || !slices.Equal(again.Images, p.Images) || !slices.Equal(again.Classes, p.Classes) || !slices.Equal(again.Probabilities, p.Probabilities) {
			t.Errorf("%+v, %v", again.Submission, err)
		}
	})
}

// FuzzCorpora reads a text as PTB, text8 and one side of WMT17 have it.
func FuzzCorpora(f *testing.F) {
	f.Add([]byte(" the cat \n sat on <unk> \r\n\n"))
	f.Add([]byte("\xef\xbb\xbfcaf\xc3\xa9 a\xe2\x80\xa8b\xc2\x85c"))
	f.Add([]byte("\xff\xfea\x00"))
	f.Add([]byte("a\x00b"))
	f.Add([]byte("caf\xe9"))
	f.Fuzz(func(t *testing.T, content []byte) {
		text, err := unicodeText("read", "f", content)
		if err != nil {
			wantError(t, err, KindOf(err), "f")
			return
		}
		if !utf8.Valid(text) || len(text) > len(content) {
			t.Fatalf("%q", text)
		}
		lex := newLexicon()
		tokens, err := readTokens("f", text, func(word string) (int32, error) { return lex.add(word), nil })
		if err != nil {
			wantError(t, err, Empty, "f")
		}
		if again, err := readTokens("f", text, lex.known); err == nil && !slices.Equal(tokens, again) {
			t.Errorf("%v, then %v", tokens, again)
		}
		words, short := text8Words(text)
		c := newContexts(&lexicon{counts: []int{1}})
		if names := c.nameTrigrams(words); len(c.trigrams) != trigramWord*len(words.words) || slices.ContainsFunc(names, func(s string) bool { return utf8.RuneCountInString(s) != 3 }) {
			t.Errorf("trigrams %q of %q", names, words.words)
		}
		if len(short) > len(text) {
			t.Errorf("%d words", len(short))
		}
		var vocabulary []string
		s := numberWords(text, rankWords(text, specials+3, &vocabulary))
		lines := bytes.Count(text, []byte{'\n'})
		if !bytes.HasSuffix(text, []byte{'\n'}) {
			lines++
		}
		if s.len() != lines || len(vocabulary) > specials+3 {
			t.Errorf("%d lines gave %d sentences, %d words", lines, s.len(), len(vocabulary))
		}
	})
}

// FuzzTranscripts reads lists beside two recordings.
func FuzzTranscripts(f *testing.F) {
	dir := f.TempDir()
	for _, name := range []string{"a.flac", "b.flac"} {
		if err := os.WriteFile(filepath.Join(dir, name), audio.EncodeFLAC(soundRate, make([]int16, 4000)), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	list := filepath.Join(dir, "x"+speechList)
	f.Add([]byte("a A CAT'S\nb lower  case\n"))
	f.Add([]byte("a\na A\nb \xff\nc C\n"))
	f.Add([]byte("\xef\xbb\xbfa CAF\xc3\x89 1984\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(list, text, 0o644); err != nil {
			t.Fatal(err)
		}
		s := &library{faults: &faults{op: opSpeech, limit: unlimited}}
		if err := s.walk(at(dir)); err != nil {
			t.Fatal(err)
		}
		if len(s.files) > 2 || len(s.frames) != len(s.files) || s.letters.len() != len(s.files) {
			t.Errorf("%d recordings, %d texts", len(s.files), s.letters.len())
		}
		for i := range s.files {
			if n := leastFrames(s.letters.at(i)); n < 1 || n > int(s.frames[i]) {
				t.Errorf("a text takes %d windows of %d", n, s.frames[i])
			}
		}
		for _, err := range s.faults.list {
			wantError(t, err, KindOf(err), dir)
		}
	})
}

// FuzzText8Zip opens archives.
func FuzzText8Zip(f *testing.F) {
	f.Add([]byte("PK\x05\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("PK\x03\x04\x14\x00\x02\x00\x08\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "text8.zip")
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		bounded(t, len(content), 4<<20, 64*deflateMost, func() {
			if _, err := unzipText8(at(path)); err != nil {
				wantError(t, err, KindOf(err), "text8.zip")
			}
		})
	})
}
