package data

import (
	"image/color"
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
		{shared.Dir(t, "sets", "cifar10"), "CIFAR-10", 3200, 0, true},
		{shared.Dir(t, "bad", "cifar10", "good_batch.bin"), "CIFAR-10 batch", 10, 0, false},
		{shared.Dir(t, "bad", "ndsb1"), "NDSB1", 3, 0, true},
		{shared.Dir(t, "sets", "caltech256", "256_ObjectCategories"), "Caltech-256", 31, 0, true},
		{shared.Dir(t, "sets", "ptb"), "PTB", 26559 + 2107, 0, true},
		{shared.Dir(t, "sets", "text8"), "text8", 70772, 0, true},
		{shared.Dir(t, "sets", "librispeech"), "LibriSpeech", 56, 0, true},
		{parted, "ImageNet", 2, 0, true},
		{shared.Dir(t, "bad", "images", "gray.JPEG"), "picture", 1, 0, false},
		{shared.Dir(t, "bad", "text", "crlf.txt"), "text", 4, 14, false},
	} {
		r, err := Check(c.path)
		if err != nil || r.Format != c.format || r.Examples != c.n || r.Words != c.words || (r.Set != nil) != c.set {
			t.Errorf("%s: %+v, %v", c.path, r, err)
		}
	}
	if r, err := Check(shared.Dir(t, "sets", "wmt17")); err != nil || r.Format != "WMT17" || r.Examples < 10900 {
		t.Errorf("%+v, %v", r, err)
	}
	_, err := Check(filepath.Join(text, "nowhere"))
	wantError(t, err, NotFound, "nowhere")
	_, err = Check(t.TempDir())
	wantError(t, err, NotFound, "data_batch_1.bin")
}
