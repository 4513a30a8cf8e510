package data

import (
	"image/color"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/shared"
)

func TestReadSubmission(t *testing.T) {
	s, err := ReadSubmission(shared.Dir(t, "sets", "ndsb1", ndsb1Form))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Classes) != 121 || len(s.Images) != 217 || s.Images[0] != "44.jpg" || len(s.Probabilities) != 121*217 || s.Probabilities[5] != 0.0082644628 {
		t.Errorf("%d classes, %d images, first %s", len(s.Classes), len(s.Images), s.Images[0])
	}
	s, err = ReadSubmission(filepath.Join(put(t, "s.csv", "image,b,a\r\nx.jpg,1,0\r\n\"y,z.jpg\",.25,1e-3"), "s.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&Submission{[]string{"b", "a"}, []string{"x.jpg", "y,z.jpg"}, []float32{1, 0, 0.25, 1e-3}}, s); d != "" {
		t.Error(d)
	}
	for name, c := range map[string]struct {
		text string
		kind Kind
		say  string
	}{
		"no head":      {"1.jpg,0.5\n", BadFormat, "line 1"},
		"no class":     {"image\n", BadFormat, "1 columns"},
		"class twice":  {"image,a,a\n1.jpg,1,0\n", BadFormat, `"a" twice`},
		"no picture":   {"image,a\n", Empty, "no picture"},
		"twice":        {"image,a\n1.jpg,1\n1.jpg,1\n", BadFormat, "line 3"},
		"short row":    {"image,a,b\n1.jpg,1\n", BadFormat, "wrong number of fields"},
		"a word":       {"image,a\n1.jpg,one\n", BadFormat, `line 2, class "a": "one"`},
		"over 1":       {"image,a\n1.jpg,1.5\n", BadFormat, "1.5"},
		"not a number": {"image,a\n1.jpg,NaN\n", BadFormat, "NaN"},
		"no bytes":     {"", Empty, "0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadSubmission(filepath.Join(put(t, "s.csv", c.text), "s.csv"))
			wantError(t, err, c.kind, "s.csv", c.say)
		})
	}
}

// The classes that a form names are the folders of train.
func TestNDSB1Form(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"train/a/1.jpg", "train/b/2.jpg"} {
		savePicture(t, filepath.Join(dir, name), color.Black, 20, 30)
	}
	for text, say := range map[string]string{"image,b,a\n": "", "image,a,c,b\n": `no such folder`, "image,b\n": "does not name the class a"} {
		if err := os.WriteFile(filepath.Join(dir, ndsb1Form), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := OpenNDSB1(dir, PictureOptions{})
		switch {
		case say != "":
			wantError(t, err, BadLabel, ndsb1Form, say)
		case err != nil:
			t.Error(err)
		}
	}
}
