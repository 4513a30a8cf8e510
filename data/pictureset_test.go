package data

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/rng"
	"optimus/internal/shared"
)

func TestOpenNDSB1Real(t *testing.T) {
	s, err := OpenNDSB1(shared.Dir(t, "sets", "ndsb1"), PictureOptions{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	if s.Train.Len() != 2572-643 || s.Valid.Len() != 643 || len(s.Classes) != 121 {
		t.Errorf("%d + %d pictures of %d classes", s.Train.Len(), s.Valid.Len(), len(s.Classes))
	}
	if d := cmp.Diff([]int{3, 48, 48}, s.Picture); d != "" {
		t.Error(d)
	}
	var b Batch
	if err := s.Valid.Fill(ids(643), &b); err != nil {
		t.Fatal(err)
	}
	x := b.Inputs[0].F
	dark := 0
	for i := range 643 {
		for j := range 48 * 48 {
			v := x[i*3*48*48+j]
			if v != x[i*3*48*48+48*48+j] || v < -1 || v > 127./128 {
				t.Fatalf("value %v of picture %d", v, i)
			}
			if v < 0 {
				dark++
			}
		}
	}
	if share := float64(dark) / (643 * 48 * 48); share < 0.02 || share > 0.3 {
		t.Errorf("%.3f of the pixels are dark; plankton is dark on a light ground", share)
	}
	labelsFollowFolders(t, s)

	other, err := OpenNDSB1(shared.Dir(t, "sets", "ndsb1", "train"), PictureOptions{Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenNDSB1(shared.Dir(t, "sets", "ndsb1", "train"), PictureOptions{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	if s.Fingerprint() != again.Fingerprint() || s.Fingerprint() == other.Fingerprint() {
		t.Error("the seed alone must decide the split")
	}
}

// labelsFollowFolders checks that every file is in one split once, with the label
// of its folder.
func labelsFollowFolders(t *testing.T, s *Set) {
	t.Helper()
	seen := map[string]bool{}
	for _, split := range []Split{s.Train, s.Valid} {
		p := split.(*gallerySplit)
		for _, id := range p.ids {
			name := p.from.identity(int(id))
			class, _, _ := strings.Cut(name, "/")
			if known, _, _ := strings.Cut(s.Classes[p.from.labels[id]], " "); known != class || seen[name] {
				t.Fatalf("%s has label %s, seen before: %v", name, s.Classes[p.from.labels[id]], seen[name])
			}
			seen[name] = true
		}
	}
}

func TestOpenCaltechReal(t *testing.T) {
	s, err := OpenCaltech(shared.Dir(t, "sets", "caltech101"), PictureOptions{Side: 32})
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "Caltech-101" || s.Train.Len() != 400 || s.Valid.Len() != 100 || len(s.Classes) != 20 {
		t.Errorf("%s: %d + %d pictures of %d classes", s.Name, s.Train.Len(), s.Valid.Len(), len(s.Classes))
	}
	labelsFollowFolders(t, s)
	var b Batch
	if err := s.Valid.Fill(ids(100), &b); err != nil {
		t.Fatal(err)
	}
	count, grey := map[int32]int{}, 0
	for i, label := range b.Inputs[1].I {
		count[label]++
		red, green := b.Inputs[0].F[i*3*1024:][:1024], b.Inputs[0].F[(i*3+1)*1024:][:1024]
		same := true
		for j := range red {
			same = same && math.Abs(float64(red[j]+123.68-green[j]-116.779)) < 0.01
		}
		if same {
			grey++
		}
	}
	if grey < 5 || len(count) != 20 || count[0] != 5 { // car_side is grey
		t.Errorf("%d grey pictures, labels %v", grey, count)
	}
	s, err = OpenCaltech(shared.Dir(t, "sets", "caltech256"), PictureOptions{})
	if err != nil || s.Name != "Caltech-256" || s.Train.Len() != 25 || s.Valid.Len() != 6 || s.Classes[1] != "152.owl" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestOpenImageNetReal(t *testing.T) {
	s, err := OpenImageNet(shared.Dir(t, "sets", "imagenet"), PictureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Train.Len() != 75 || s.Valid.Len() != 18 || len(s.Classes) != 20 || s.Classes[0] != "n01443537 goldfish" {
		t.Errorf("%d + %d pictures of classes %q", s.Train.Len(), s.Valid.Len(), s.Classes)
	}
	labelsFollowFolders(t, s)
	var b, again Batch
	if err := s.Train.Fill([]int{74, 3, 74}, &b); err != nil {
		t.Fatal(err)
	}
	if err := s.Train.Fill([]int{74, 3, 74}, &again); err != nil { // from the cache
		t.Fatal(err)
	}
	if !slices.Equal(b.Inputs[0].F, again.Inputs[0].F) || !slices.Equal(b.Inputs[1].I, again.Inputs[1].I) {
		t.Error("the cache changed a picture")
	}
	size := 3 * 256 * 256
	if x := b.Inputs[0].F; !slices.Equal(x[:size], x[2*size:]) || slices.Equal(x[:size], x[size:2*size]) {
		t.Error("the same picture differs, or others do not")
	}
}

func TestBO28_StrayEntries(t *testing.T) {
	dir := t.TempDir()
	for i, class := range []string{"cat", "dog", "Äpfel", "big bus", "数"} {
		savePicture(t, filepath.Join(dir, class, "a, #1%.JPG"), color.Gray{byte(i)}, 9, 9)
	}
	savePicture(t, filepath.Join(dir, ".ipynb_checkpoints", "a.jpg"), color.White, 9, 9)
	savePicture(t, filepath.Join(dir, "cat", "nested", "a.jpg"), color.White, 9, 9)
	savePicture(t, filepath.Join(dir, "stray.jpg"), color.White, 9, 9)
	for _, name := range []string{".DS_Store", "Thumbs.db", "cat/._a.jpg", "cat/notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{dir: "loop", filepath.Join(dir, "dog"): "linked"} {
		if err := os.Symlink(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	os.Remove(filepath.Join(dir, "stray.jpg")) // else the loop is a folder of one picture
	l, err := listClasses(&faults{}, at(dir), doPicture)
	if err != nil || len(l.files) != 6 {
		t.Fatalf("%+v, %v", l, err)
	}
	if d := cmp.Diff([]string{"big bus", "cat", "dog", "linked", "void", "Äpfel", "数"}, l.classes); d != "" {
		t.Error(d)
	}
}

func TestPictureSetErrors(t *testing.T) {
	ok := func(t *testing.T, names ...string) string {
		dir := t.TempDir()
		for _, name := range names {
			savePicture(t, filepath.Join(dir, name), color.Black, 20, 30)
		}
		return dir
	}
	open := map[string]func(string, PictureOptions) (*Set, error){"ndsb1": OpenNDSB1, "caltech": OpenCaltech, "imagenet": OpenImageNet}
	for name, f := range open {
		_, err := f(filepath.Join(t.TempDir(), "nowhere"), PictureOptions{})
		wantError(t, err, NotFound, "nowhere")
		_, err = f(t.TempDir(), PictureOptions{Side: -1})
		wantError(t, err, BadOption, "-1×-1")
		if _, err = f(t.TempDir(), PictureOptions{}); KindOf(err) != Empty && KindOf(err) != NotFound {
			t.Errorf("%s of an empty folder: %v", name, err)
		}
	}
	_, err := OpenImageNet(ok(t, "train/a/1.jpg"), PictureOptions{})
	wantError(t, err, NotFound, "val")
	_, err = OpenImageNet(ok(t, "train/a/1.jpg", "val/ILSVRC2012_val_00000001.JPEG"), PictureOptions{})
	wantError(t, err, Empty, "val", "sort")
	_, err = OpenImageNet(ok(t, "train/a/1.jpg", "val/b/1.jpg"), PictureOptions{})
	wantError(t, err, BadLabel, filepath.Join("val", "b"))
	_, err = OpenCaltech(ok(t, "train/a/1.jpg", "train/b/1.jpg", "test/1.jpg", "test/2.jpg"), PictureOptions{})
	wantError(t, err, Empty, `"test"`)
	dir := ok(t, "train/a/1.jpg", "val/a/1.jpg")
	if err := os.WriteFile(filepath.Join(dir, synsetFile), []byte("a fish\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = OpenImageNet(dir, PictureOptions{})
	wantError(t, err, BadFormat, synsetFile, "line 2")

	dir = ok(t, "train/a/1.jpg", "train/a/2.jpg", "train/a/3.jpg", "train/a/4.jpg")
	cut := filepath.Join(dir, "train", "a", "3.jpg")
	if err := os.Truncate(cut, 300); err != nil {
		t.Fatal(err)
	}
	s, err := OpenNDSB1(dir, PictureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(s.Train.Fill(ids(s.Train.Len()), &Batch{}), s.Valid.Fill([]int{0}, &Batch{}))
	wantError(t, err, Truncated, "3.jpg", "300 bytes")
	wantError(t, s.Train.Fill([]int{3}, &Batch{}), BadID, "0..2")
	if err := os.Truncate(cut, 0); err != nil {
		t.Fatal(err)
	}
	_, err = OpenNDSB1(dir, PictureOptions{})
	wantError(t, err, Empty, "3.jpg")
}

// TestGalleryKeepsWithinItsRoom asks from many goroutines for more than fits.
func TestGalleryKeepsWithinItsRoom(t *testing.T) {
	const n, room = 50, 20
	var lock sync.Mutex
	loads := map[int]int{}
	g := newGallery(PictureOptions{Cache: room * 4}, 1, 2, make([]int32, n), processors(), func(i int) ([]byte, error) {
		lock.Lock()
		defer lock.Unlock()
		loads[i]++
		return []byte{byte(i), 0, 0, 1}, nil
	}, func(i int) string { return fmt.Sprint(i) })
	s := &gallerySplit{g, all(n), shift([3]float64{}, 1)}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			var b Batch
			for range 5 {
				if err := s.Fill(ids(n), &b); err != nil {
					t.Error(err)
				}
				for i := range n {
					if x := b.Inputs[0].F[i*12:]; x[0] != float32(i) || x[8] != float32(i) || x[11] != 1 {
						t.Errorf("picture %d is %v", i, x[:12])
					}
				}
			}
		})
	}
	group.Wait()
	kept, total := 0, 0
	for i := range g.kept {
		if g.kept[i].Load() != nil {
			kept++
		}
		total += loads[i]
	}
	if kept > room || kept < room-4 || int(g.room.Load()) != (room-kept)*4 || total > 20*n-12*kept { // eight of twenty times each, before it was kept
		t.Errorf("%d kept, room for %d; %d loads; %d bytes left", kept, room, total, g.room.Load())
	}
}

func TestGeneratePictures(t *testing.T) {
	for name, c := range map[string]struct {
		make           func(n int, o PictureOptions) (*Set, error)
		classes, valid int
		side           int
	}{"ndsb1": {GenerateNDSB1, 121, 25, 48}, "caltech": {GenerateCaltech, 257, 16, 256}, "imagenet": {GenerateImageNet, 1000, 16, 256}} {
		s, err := c.make(100, PictureOptions{Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Classes) != c.classes || s.Valid.Len() != c.valid || s.Train.Len() != 100-c.valid || s.Picture[2] != c.side || !s.Generated {
			t.Errorf("%s: %d + %d pictures of %d classes, %v", name, s.Train.Len(), s.Valid.Len(), len(s.Classes), s.Picture)
		}
		again, _ := c.make(100, PictureOptions{Seed: 3})
		other, _ := c.make(100, PictureOptions{Seed: 4})
		if s.Fingerprint() != again.Fingerprint() || s.Fingerprint() == other.Fingerprint() {
			t.Errorf("%s: the seed alone must decide the set", name)
		}
		var a, b Batch
		if err := errors.Join(s.Train.Fill([]int{7}, &a), again.Train.Fill([]int{1, 7}, &b)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Inputs[0].F, b.Inputs[0].F[len(a.Inputs[0].F):]) {
			t.Errorf("%s: the same picture differs", name)
		}
		_, err = c.make(0, PictureOptions{})
		wantError(t, err, BadOption)
		_, err = c.make(9, PictureOptions{Classes: 5000})
		wantError(t, err, BadOption, "5000 classes")
		if _, err = c.make(9, PictureOptions{Classes: 1, Side: 1}); err != nil {
			t.Error(err)
		}
	}
}

// TestFiguresDiffer: figures of two classes that differ in one digit differ, and
// every class covers some of the picture.
func TestFiguresDiffer(t *testing.T) {
	f := figures{side: 64, classes: forms * forms * forms}
	draw := func(class int) []byte { return f.paint(class, forms, rng.NewKey(9), 64, 64) }
	for digit := range forms {
		for _, unit := range []int{1, forms, forms * forms} {
			a, b := draw(digit*unit), draw((digit+1)%forms*unit)
			changed := 0
			for i := range a {
				if int(a[i])-int(b[i]) > 30 || int(b[i])-int(a[i]) > 30 {
					changed++
				}
			}
			if changed < 100 {
				t.Errorf("digit %d of %d: %d values change", digit, unit, changed)
			}
		}
	}
}
