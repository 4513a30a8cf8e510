package data

import (
	"context"
	"errors"
	"image/color"
	"os"
	"path/filepath"
	"testing"

	"optimus/internal/shared"
)

func TestCheck(t *testing.T) {
	text := put(t, mrNeg, "bad film\n", mrPos, "a fine film\ngood\n")
	parted := t.TempDir()
	for _, part := range []string{"train", "val"} {
		savePicture(t, filepath.Join(parted, part, "n01440764", "1.JPEG"), color.White, 30, 20)
	}
	for _, c := range []struct {
		path   string
		format string
		n      int
		words  int
		set    bool
	}{
		{text, "MR", 3, 0, true},
		{filepath.Join(text, mrPos), "text", 2, 4, false},
		{shared.Dir(t, "bad", "cifar10", "good_batch.bin"), "CIFAR-10 batch", 10, 0, false},
		{shared.Dir(t, "bad", "mnist", "good-images-idx3-ubyte"), "MNIST file", 12, 0, false},
		{shared.Dir(t, "bad", "ndsb1"), "NDSB1", 3, 0, true},
		{shared.Dir(t, "sets", "ndsb1", "sampleSubmission.csv"), "submission", 217, 0, false},
		{shared.Dir(t, "sets", "text8", "text8"), "text8", 0, 70780, false},
		{parted, "ImageNet", 2, 0, true},
		{shared.Dir(t, "bad", "images", "gray.JPEG"), "picture", 1, 0, false},
		{shared.Dir(t, "bad", "wav", "extensible.wav"), "recording", 1, 0, false},
		{shared.Dir(t, "bad", "text", "crlf.txt"), "text", 4, 14, false},
	} {
		r, err := Check(t.Context(), c.path)
		if err != nil || r.Format != c.format || r.Examples != c.n || r.Words != c.words || (r.Set != nil) != c.set || len(r.Faults) > 0 {
			t.Errorf("%s: %+v, %v", c.path, r, err)
		}
	}
	_, err := Check(t.Context(), filepath.Join(text, "nowhere"))
	wantError(t, err, NotFound, "nowhere")
	_, err = Check(t.Context(), t.TempDir())
	wantError(t, err, NotFound, "MNIST, Caltech, ImageNet, LibriSpeech") // a list of what is known
}

// All that is bad is listed, not the first alone.
func TestCheckListsAll(t *testing.T) {
	gone := func(dir, name string) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	cifar := put(t, "data_batch_1.bin", record(12, 0, 0, 0), "data_batch_2.bin", record(1, 0, 0, 0), "data_batch_3.bin", "short", cifarTest, "")
	mr := put(t, mrNeg, "no end", mrPos, "")
	ptb := put(t, ptbTrain, "a\x00b", ptbValid, "too short\n")
	wmt := put(t, "train.de", "a\n", "train.en", "b\nc\n", "newstest1.de", "a\n", "newstest1.en", "\xff\n")
	ndsb := t.TempDir()
	for _, name := range []string{"train/a/1.jpg", "train/a/2.jpg", "train/b/1.jpg", "train/b/2.jpg", "train/b/3.jpg", "test/9.jpg"} {
		savePicture(t, filepath.Join(ndsb, name), color.White, 30, 20)
	}
	for name, size := range map[string]int64{"train/a/2.jpg": 300, "train/b/1.jpg": 0, "test/9.jpg": 10} {
		if err := os.Truncate(filepath.Join(ndsb, name), size); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(ndsb, ndsb1Form), []byte("image,a\n9.jpg,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	speech := putRecordings(t, "train-x/1/2", "a", "A", "dev-x/3/4", "b", "B", "dev-x/3/5", "c", "4 EVER", "dev-x/3/6", "d", "D")
	gone(speech, "train-x/1/2/a.flac")
	gone(speech, "dev-x/3/6/d"+speechList)
	for name, c := range map[string]struct {
		dir   string
		files []string
	}{
		"cifar10":     {cifar, []string{"data_batch_1.bin", "data_batch_3.bin", cifarTest}},
		"mr":          {mr, []string{mrNeg, mrPos}},
		"ptb":         {ptb, []string{ptbTrain}},
		"wmt17":       {wmt, []string{"train.de", "newstest1.en"}},
		"ndsb1":       {ndsb, []string{"1.jpg", "2.jpg", ndsb1Form, "9.jpg"}},
		"librispeech": {speech, []string{"c" + speechList, "d.flac", "a" + speechList, filepath.Base(speech)}}, // nothing is left to train on
	} {
		r, err := Check(t.Context(), c.dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(r.Faults) != len(c.files) {
			t.Errorf("%s: %v", name, r.Faults)
			continue
		}
		for i, fault := range r.Faults {
			if filepath.Base(fault.Path) != c.files[i] {
				t.Errorf("%s: fault %d is of %s, want %s", name, i, fault.Path, c.files[i])
			}
		}
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := Check(ctx, shared.Dir(t, "bad", "ndsb1")); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}
