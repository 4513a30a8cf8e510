package data

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree returns the sha256 of each file below a folder.
func tree(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	files := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		files[name] = sha256.Sum256([]byte(read(t, path)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Each set that can be made is found to be whole, has as many examples as were asked
// for, and is of its seed alone.
func TestMake(t *testing.T) {
	if got := strings.Join(Formats(), " "); got != "caltech cifar10 imagenet librispeech mnist mr ndsb1 ptb text8 wmt17" {
		t.Fatalf("formats are %s", got)
	}
	for _, name := range Formats() {
		t.Run(name, func(t *testing.T) {
			above := t.TempDir()
			n := 60
			if name == "caltech" || name == "imagenet" { // large pictures
				n = 20
			}
			make := func(folder string, seed uint64) map[string][32]byte {
				if err := Make(t.Context(), name, filepath.Join(above, folder), n, seed); err != nil {
					t.Fatal(err)
				}
				return tree(t, filepath.Join(above, folder))
			}
			one, again, other := make("a", 1), make("new/b", 1), make("c", 2)
			if fmt.Sprint(one) != fmt.Sprint(again) || fmt.Sprint(one) == fmt.Sprint(other) {
				t.Error("the seed alone must decide the bytes")
			}
			r, err := Check(t.Context(), filepath.Join(above, "a"))
			if err != nil || len(r.Faults) > 0 || r.Examples != n || r.Set == nil || r.Set.Valid.Len() == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			if strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(r.Format, "-256"), "-", "")) != name {
				t.Errorf("it is taken for %s", r.Format)
			}
			if left, err := filepath.Glob(filepath.Join(above, ".*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// What is written is what the generator of the name makes, where the format keeps it.
func TestMakeIsWhatIsGenerated(t *testing.T) {
	const n, seed = 60, 5
	for name, c := range map[string]struct {
		open func(dir string) (*Set, error)
		make func() (*Set, error)
	}{
		"cifar10": {OpenCIFAR10, func() (*Set, error) { return GenerateCIFAR10(n, seed) }},
		"mnist":   {OpenMNIST, func() (*Set, error) { return GenerateMNIST(n, seed) }},
		"ptb":     {OpenPTB, func() (*Set, error) { return GeneratePTB(n, seed) }},
		"wmt17":   {func(dir string) (*Set, error) { return OpenWMT17(dir, PairOptions{}) }, func() (*Set, error) { return GenerateWMT17(n, seed, PairOptions{}) }},
	} {
		dir := filepath.Join(t.TempDir(), name)
		if err := Make(t.Context(), name, dir, n, seed); err != nil {
			t.Fatal(err)
		}
		a, err := c.open(dir)
		b, err2 := c.make()
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if a.Fingerprint() != b.Fingerprint() {
			t.Errorf("%s: what is written and what is generated differ", name)
		}
	}
	// Recordings lie in the order of their speakers.
	dir := filepath.Join(t.TempDir(), "speech")
	if err := Make(t.Context(), "librispeech", dir, n, seed); err != nil {
		t.Fatal(err)
	}
	a, err := OpenLibriSpeech(dir, Options{})
	b, err2 := GenerateLibriSpeech(n, seed)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if x, y := soundSums(t, a.Train), soundSums(t, b.Train); !slices.Equal(x, y) || len(x) != 54 {
		t.Error("recordings that are written and that are generated differ")
	}
}

// soundSums returns the sums of the samples and letters of recordings, sorted.
func soundSums(t *testing.T, split Split) (sums []string) {
	s := split.(*speechSplit)
	for _, id := range s.ids {
		samples, err := s.read(int(id))
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		for _, v := range samples {
			fmt.Fprint(h, math.Float32bits(v), " ")
		}
		sums = append(sums, fmt.Sprintf("%x %v", h.Sum(nil), s.letters.at(int(id))))
	}
	slices.Sort(sums)
	return sums
}

// Class folders have pictures of many sizes, of which some are grey, in classes of
// uneven size.
func TestMakePictures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n")
	if err := Make(t.Context(), "ndsb1", dir, 400, 1); err != nil {
		t.Fatal(err)
	}
	l, err := listClasses(&faults{}, at(dir).Join("train"), doNDSB1)
	if err != nil {
		t.Fatal(err)
	}
	counts, sides := map[int32]int{}, map[int]bool{}
	for i, f := range l.files {
		r, err := l.read(i)
		if err != nil || r.planes != 1 || min(r.width, r.height) < 24 || max(r.width, r.height) > 422 {
			t.Fatalf("%+v, %v", r, err)
		}
		counts[f.label]++
		sides[r.width] = true
	}
	most, least := 0, 400
	for _, n := range counts {
		most, least = max(most, n), min(least, n)
	}
	if len(l.classes) != 40 || len(counts) != 40 || most < 8*least || len(sides) < 100 {
		t.Errorf("%d classes of %d to %d pictures, %d widths", len(counts), least, most, len(sides))
	}
	a := newAlbum(&maker{n: 100, seed: 1}, figures{classes: 257}, 20, 40, 10)
	grey := 0
	for i := range 200 {
		b, err := a.jpeg(i%10, i)
		if err != nil {
			t.Fatal(err)
		}
		r, err := decodePicture("made", b)
		if err != nil {
			t.Fatal(err)
		}
		if r.planes == 1 {
			grey++
		}
	}
	if grey < 2 || grey > 25 {
		t.Errorf("%d of 200 are grey, want 10 or so", grey)
	}
}

func TestMakeRefuses(t *testing.T) {
	full := put(t, "a.txt", "mine")
	err := Make(t.Context(), "mr", full, 10, 1)
	wantError(t, err, BadOption, full, "a.txt")
	if read(t, filepath.Join(full, "a.txt")) != "mine" {
		t.Error("the file changed")
	}
	wantError(t, Make(t.Context(), "mr", filepath.Join(full, "a.txt"), 10, 1), Unreadable, "a.txt")
	wantError(t, Make(t.Context(), "mr", filepath.Join(full, "a.txt", "b"), 10, 1), Unreadable, "a.txt")
	wantError(t, Make(t.Context(), "cifar", t.TempDir(), 10, 1), BadOption, "cifar", "cifar10")
	wantError(t, Make(t.Context(), "text8", t.TempDir(), 10, 1), BadOption, "50")
	wantError(t, Make(t.Context(), "mr", t.TempDir(), 1<<21, 1), BadOption, "2097152")

	// An end on the way leaves nothing.
	above := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	for _, name := range Formats() {
		if err := Make(ctx, name, filepath.Join(above, "x"), 60, 1); !errors.Is(err, enough) {
			t.Errorf("%s: %v", name, err)
		}
	}
	entries, err := os.ReadDir(above)
	if err != nil || len(entries) > 0 {
		t.Errorf("%v is left", entries)
	}
}
