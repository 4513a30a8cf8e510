package data

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"optimus/data/source"
	"optimus/data/source/storetest"
	"optimus/internal/shared"
)

// Every real set is the same, to the last bit of each example, in an object store as
// in a folder. Of the sets in class folders the one of small pictures stands for all.
func TestRealSetsInStore(t *testing.T) {
	s := storetest.New(t)
	cache := t.TempDir()
	for _, f := range formats() {
		inFiles := f.name == "ndsb1" || f.name == "librispeech" // whose versions a store tells
		if f.name == "caltech" || f.name == "imagenet" || inFiles && testing.Short() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			dir := shared.Dir(t, "sets", f.name)
			if err := s.PutTree(dir, f.name); err != nil {
				t.Fatal(err)
			}
			read := func(location string) *Set {
				set, err := openAt("open", location, func(dir source.Path) (*Set, error) {
					if !f.is(dir) {
						t.Errorf("%v is not recognised", dir)
					}
					return f.open(dir, &faults{})
				})
				if err != nil {
					t.Fatal(err)
				}
				return set
			}
			local, remote := read(dir), read(s.Location(f.name, "cache_dir", cache, "cache", "100MB"))
			defer func() {
				if err := remote.Close(); err != nil {
					t.Error(err)
				}
			}()
			if a, b := local.Fingerprint(), remote.Fingerprint(); (a != b) != inFiles {
				t.Errorf("fingerprint %s, in the folder %s", b, a)
			}
			sameExamples(t, local.Train, remote.Train)
			sameExamples(t, local.Valid, remote.Valid)
		})
	}
}

// sameExamples compares every example of two splits, batch by batch.
func sameExamples(t *testing.T, want, got Split) {
	t.Helper()
	if want.Len() != got.Len() {
		t.Fatalf("%d examples, want %d", got.Len(), want.Len())
	}
	var a, b Batch
	for ids := range slices.Chunk(ids(want.Len()), 64) {
		if err := want.Fill(ids, &a); err != nil {
			t.Fatal(err)
		}
		if err := got.Fill(ids, &b); err != nil {
			t.Fatal(err)
		}
		for k := range a.Inputs {
			if !slices.Equal(a.Inputs[k].F, b.Inputs[k].F) || !slices.Equal(a.Inputs[k].I, b.Inputs[k].I) {
				t.Fatalf("examples from %d on differ in input %d", ids[0], k)
			}
		}
	}
}

// pictureStore has a set of small pictures in a store.
func pictureStore(t *testing.T) *storetest.Store {
	s := storetest.New(t)
	dir := t.TempDir()
	if err := Make(t.Context(), "ndsb1", dir+"/ndsb1", 130, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.PutTree(dir, ""); err != nil {
		t.Fatal(err)
	}
	return s
}

// A store that fails is never a bad picture: it ends the reading, at the opening and in
// the middle of an epoch, however many pictures may be left out.
func TestStoreFails(t *testing.T) {
	running := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, running) }) // after the store has stopped
	s := pictureStore(t)
	location := s.Location("ndsb1", "cache", "0", "deadline", "200ms")
	dead := func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	set, err := OpenNDSB1(location, PictureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var b Batch
	if err := set.Train.Fill(ids(10), &b); err != nil {
		t.Fatal(err)
	}
	s.Break.Store(&dead)
	err = set.Train.Fill([]int{20, 21, 22}, &b)
	wantError(t, err, Unreadable, "s3://sets/ndsb1/train/", "no byte within 200ms", "check the network and the store")
	_, err = OpenNDSB1(location, PictureOptions{})
	wantError(t, err, Unreadable, "s3://sets/ndsb1", "no byte within")

	pictures := func(server http.Handler, w http.ResponseWriter, r *http.Request) { // fails for these alone
		if strings.HasSuffix(r.URL.Path, ".jpg") {
			dead(server, w, r)
			return
		}
		server.ServeHTTP(w, r)
	}
	s.Break.Store(&pictures)
	for _, skip := range []int{0, 1000} {
		set, err := OpenNDSB1(location, PictureOptions{Skip: skip})
		if err == nil {
			err = set.Train.Fill([]int{0}, &b)
			set.Close()
		}
		wantError(t, err, Unreadable, "no byte within")
	}
	if r, err := Check(t.Context(), location); err == nil {
		t.Errorf("check found %d faults in pictures that nobody has seen", len(r.Faults))
	} else {
		wantError(t, err, Unreadable, "no byte within")
	}

	s.Break.Store(nil)
	split := set.Train.(*gallerySplit)
	file := strings.Fields(split.from.identity(int(split.ids[30]))) // name, size, version
	size, err := strconv.Atoi(file[1])
	if err != nil {
		t.Fatal(err)
	}
	before := set.Fingerprint()
	s.Put(t, "ndsb1/train/"+file[0], make([]byte, size))
	wantError(t, set.Train.Fill([]int{30}, &b), Unreadable, file[0], "has changed since it was listed", "start anew")
	again, err := OpenNDSB1(location, PictureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Fingerprint() == before {
		t.Error("a member that opens the set now is not told from those that opened it before")
	}
}

// BenchmarkFill fills batches of decoded pictures: from a folder, from a store on this
// machine, and from the cache of what was read from it.
func BenchmarkFill(b *testing.B) {
	s := storetest.New(b)
	dir := shared.Dir(b, "sets", "ndsb1")
	if err := s.PutTree(dir, "ndsb1"); err != nil {
		b.Fatal(err)
	}
	cache := b.TempDir()
	for _, c := range []struct{ name, location string }{
		{"folder", dir},
		{"store", s.Location("ndsb1", "cache", "0")},
		{"cache", s.Location("ndsb1", "cache_dir", cache, "cache", "1GB")},
	} {
		b.Run(c.name, func(b *testing.B) {
			set, err := OpenNDSB1(c.location, PictureOptions{Cache: -1})
			if err != nil {
				b.Fatal(err)
			}
			defer set.Close()
			var batch Batch
			fill := func() {
				for ids := range slices.Chunk(ids(set.Train.Len()), 64) {
					if err := set.Train.Fill(ids, &batch); err != nil {
						b.Fatal(err)
					}
				}
			}
			fill()
			for b.Loop() {
				fill()
			}
			b.ReportMetric(float64(set.Train.Len()*b.N)/b.Elapsed().Seconds(), "examples/s")
		})
	}
}
