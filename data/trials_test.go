package data

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"optimus/data/audio"
)

// encoded returns a picture as JPEG or PNG.
func encoded(t *testing.T, img image.Image, encode func(b *bytes.Buffer, img image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(b *bytes.Buffer, img image.Image) error { return jpeg.Encode(b, img, nil) }
func asPNG(b *bytes.Buffer, img image.Image) error  { return png.Encode(b, img) }

// noisy fills a picture so that no cut of its file leaves all pixels.
func noisy(img interface {
	image.Image
	Set(x, y int, c color.Color)
}, seed int) image.Image {
	for i := range 24 * 24 {
		v := uint8((i*seed + i*i) % 251)
		img.Set(i%24, i/24, color.NRGBA{v, 255 - v, v / 2, 200})
	}
	return img
}

// TestBO29_TruncatedOrMislabelled: of 200 pictures five cannot be read.
func TestBO29_TruncatedOrMislabelled(t *testing.T) {
	dir := t.TempDir()
	bounds := image.Rect(0, 0, 24, 24)
	save := func(name string, content []byte) {
		t.Helper()
		path := filepath.Join(dir, "train", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 191 {
		if i%2 == 0 {
			save(fmt.Sprintf("a/%03d.jpg", i), encoded(t, noisy(image.NewRGBA(bounds), i), asJPEG))
		} else {
			save(fmt.Sprintf("b/%03d.png", i), encoded(t, noisy(image.NewRGBA(bounds), i), asPNG))
		}
	}
	whole := encoded(t, noisy(image.NewRGBA(bounds), 7), asJPEG)
	drawn := encoded(t, noisy(image.NewNRGBA(bounds), 7), asPNG)
	bad := []string{"cut1.jpg", "cut2.jpg", "cut3.png", "none.jpg", "text.jpg"}
	save("a/cut1.jpg", whole[:len(whole)/2])
	save("b/cut2.jpg", whole[:len(whole)*2/3])
	save("b/cut3.png", drawn[:len(drawn)/2])
	save("b/none.jpg", nil)
	save("b/text.jpg", []byte("this is not a picture"))
	save("a/renamed.jpg", drawn)
	save("a/grey.jpg", encoded(t, noisy(image.NewGray(bounds), 3), asJPEG))
	save("a/alpha.png", drawn)
	save("a/deep.png", encoded(t, noisy(image.NewRGBA64(bounds), 3), asPNG))

	// Strict: the first that is asked for ends it, the empty one at once.
	_, err := OpenNDSB1(dir, PictureOptions{})
	wantError(t, err, Empty, "none.jpg")
	if err := os.WriteFile(filepath.Join(dir, "train", "b", "none.jpg"), whole[:10], 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := OpenNDSB1(dir, PictureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(s.Train.Fill(ids(s.Train.Len()), &Batch{}), s.Valid.Fill(ids(s.Valid.Len()), &Batch{}))
	if named := slices.ContainsFunc(bad, func(name string) bool { return strings.Contains(err.Error(), name) }); !named {
		t.Errorf("%v", err)
	}

	// Five may be left out: they are listed, and all who open the set have the same.
	one, err := OpenNDSB1(dir, PictureOptions{Skip: 5})
	if err != nil {
		t.Fatal(err)
	}
	two, err := OpenNDSB1(dir, PictureOptions{Skip: 5})
	if err != nil {
		t.Fatal(err)
	}
	var skipped []string
	for _, err := range one.Skipped {
		skipped = append(skipped, filepath.Base(pathOf(err)))
	}
	slices.Sort(skipped)
	if n := one.Train.Len() + one.Valid.Len(); n != 195 || !slices.Equal(skipped, bad) || one.Fingerprint() != two.Fingerprint() {
		t.Errorf("%d pictures, skipped %v", n, skipped)
	}
	var b Batch
	if err := errors.Join(one.Train.Fill(ids(one.Train.Len()), &b), one.Valid.Fill(ids(one.Valid.Len()), &b)); err != nil {
		t.Error(err)
	}
	if b.Inputs[0].Shape[1] != 3 {
		t.Errorf("shape %v", b.Inputs[0].Shape)
	}

	// Two may be left out: it ends with the list.
	_, err = OpenNDSB1(dir, PictureOptions{Skip: 2})
	wantError(t, err, Truncated, "at most 2", "cut1.jpg", "cut2.jpg", "cut3.png")
	_, err = OpenNDSB1(dir, PictureOptions{Skip: -1})
	wantError(t, err, BadOption, "-1")
}

// TestBO30_FileHandles reads pictures, some of them bad, again and again with few
// handles to spend. Decoded pictures are not kept, so that each is read each time.
func TestBO30_FileHandles(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no list of open files: ", err)
		}
		return len(entries)
	}
	before := count()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(before + 64)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)

	const n = 500
	dir := t.TempDir()
	for i := range n {
		savePicture(t, filepath.Join(dir, "train", fmt.Sprint(i%5), fmt.Sprint(i, ".jpg")), color.Gray{byte(i)}, 8, 8)
	}
	for i := 0; i < n; i += 100 {
		if err := os.Truncate(filepath.Join(dir, "train", fmt.Sprint(i%5), fmt.Sprint(i, ".jpg")), 100); err != nil {
			t.Fatal(err)
		}
	}
	s, err := OpenNDSB1(dir, PictureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Train.(*gallerySplit).from.room.Store(0)
	first := 0
	for epoch := range 4 {
		var group sync.WaitGroup
		var failed [8]int
		for reader := range failed {
			group.Go(func() {
				var b Batch
				for id := reader; id < s.Train.Len(); id += len(failed) {
					err := s.Train.Fill([]int{id}, &b)
					if err != nil {
						failed[reader]++
					}
					if err != nil && KindOf(err) != Truncated {
						t.Errorf("%v", err)
					}
				}
			})
		}
		group.Wait()
		sum := 0
		for _, k := range failed {
			sum += k
		}
		switch now := count(); {
		case epoch == 0:
			first = now
		case now > first:
			t.Errorf("epoch %d: %d handles, %d after the first", epoch, now, first)
		}
		if sum == 0 || sum > 5 {
			t.Errorf("%d pictures failed", sum)
		}
	}
}

// TestBO32_FLAC: streams of the reference encoder stand in for the 64 public files, in
// the test of package audio. Here recordings of a set are damaged.
func TestBO32_FLAC(t *testing.T) {
	tone := make([]int16, 2000)
	for i := range tone {
		tone[i] = int16(i * 37)
	}
	stream := audio.EncodeFLAC(soundRate, tone)
	flipped := bytes.Clone(stream)
	flipped[len(flipped)-900] ^= 4
	head := bytes.Clone(stream)
	head[30] ^= 1 // of the MD5
	for name, c := range map[string]struct {
		file []byte
		kind Kind
		say  string
	}{
		"no samples":    {audio.EncodeFLAC(soundRate, nil), Empty, "0 samples"},
		"one sample":    {audio.EncodeFLAC(soundRate, tone[:1]), Empty, "1 samples"},
		"last frame":    {stream[:len(stream)-1], Truncated, "ends too early"},
		"one bit":       {flipped, BadFormat, "CRC-16"},
		"MD5":           {head, BadFormat, "MD5"},
		"another rate":  {audio.EncodeFLAC(44100, tone), BadFormat, "44100"},
		"whole, so not": {stream, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := putRecordings(t, "train-x/1/2", "a", "A CAT", "dev-x/3/4", "b", "B")
			path := filepath.Join(dir, "train-x/1/2", "a.flac")
			if err := os.WriteFile(path, c.file, 0o644); err != nil {
				t.Fatal(err)
			}
			s, err := OpenLibriSpeech(dir, Options{})
			if err == nil {
				err = s.Train.Fill([]int{0}, &Batch{})
			}
			if c.kind == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, c.kind, "a.flac", c.say)
			// Left out, it is listed.
			putAnother(t, dir)
			s, err = OpenLibriSpeech(dir, Options{Skip: 1})
			if err != nil || s.Train.Len() != 1 || len(s.Skipped) != 1 || KindOf(s.Skipped[0]) != c.kind {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// putAnother adds a good recording to train on.
func putAnother(t *testing.T, dir string) {
	t.Helper()
	good := filepath.Join(putRecordings(t, "train-x/5/6", "c", "C"), "train-x/5")
	if err := os.Rename(good, filepath.Join(dir, "train-x/5")); err != nil {
		t.Fatal(err)
	}
}
