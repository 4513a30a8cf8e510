package source_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob/memblob"

	"optimus/data/source"
	"optimus/data/source/storetest"
)

// files have names that sort differently in stores and in folders, and sizes around
// those of blocks.
func files() []string {
	return []string{
		"a/x.txt", "one", "a.txt", "two", "a-b/y.txt", "three", "Z/.hidden", "four", "ü/ß ?&+%.txt", "five",
		"deep/er/est/file", pattern(100), "sizes/block", pattern(32<<10 - 64), "sizes/more", pattern(32<<10 - 63), "sizes/large", pattern(70_000), "empty", "",
	}
}

// trees are the same files in a folder, below a folder of an S3 store, in a Google
// store, and in a bucket of gocloud.dev in memory.
func trees(t *testing.T) map[string]*source.Tree {
	dir := write(t, files()...)
	s := storetest.New(t)
	if err := s.PutTree(dir, "below/here"); err != nil {
		t.Fatal(err)
	}
	s.Put(t, "below/here/a/", nil) // as some programs mark a folder
	s.Put(t, "below/hereafter", []byte("another"))
	t.Setenv("STORAGE_EMULATOR_HOST", s.URL)
	google, err := source.Open(t.Context(), "gs://"+storetest.Bucket+"/below/here?cache=0")
	if err != nil {
		t.Fatal(err)
	}
	memory := memblob.OpenBucket(nil)
	for i, list := 0, files(); i < len(list); i += 2 {
		if err := memory.WriteAll(t.Context(), "here/"+list[i], []byte(list[i+1]), nil); err != nil {
			t.Fatal(err)
		}
	}
	mem, err := source.Bucket(t.Context(), memory, "mem://x/here", "here", source.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(google.Close(), mem.Close()); err != nil {
			t.Error(err)
		}
	})
	file, err := source.Open(t.Context(), "file://"+dir)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*source.Tree{"local": source.Local(dir), "file": file, "s3": open(t, s, "below/here"), "gs": google, "mem": mem,
		"fs": source.Of(os.DirFS(dir), dir)}
}

// All stores show the same.
func TestSame(t *testing.T) {
	all := trees(t)
	want := walk(t, all["local"].Root(), "")
	if len(want) != len(files())/2 {
		t.Fatalf("%d files", len(want))
	}
	for name, tree := range all {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second time from the cache
				if diff := cmp.Diff(want, walk(t, tree.Root(), "")); diff != "" {
					t.Error(diff)
				}
			}
			root := tree.Root()
			if !root.IsDir() || !root.Join("a").IsDir() || root.Join("a.txt").IsDir() || root.Join("nowhere").Exists() || root.Join("er").Exists() {
				t.Error("it does not tell folders and files apart")
			}
			if !root.Matches("*/*.nothing", "d*/er/*/f?le") || root.Matches("*/*.nothing", "a.txt/*") {
				t.Error("patterns do not match as they should")
			}
			for _, f := range []func() error{
				func() error { _, err := root.Join("no/where").Stat(); return err },
				func() error { _, err := root.Join("no/where").ReadDir(); return err },
				func() error { _, err := content(root.Join("no/where")); return err },
			} {
				if err := f(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no/where") {
					t.Errorf("what is not there: %v", err)
				}
			}
			large := pattern(70_000)
			f, err := root.Join("sizes", "large").Open()
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := iotest.TestReader(io.NewSectionReader(f, 0, int64(len(large))), []byte(large)); err != nil {
				t.Error(err)
			}
			b := make([]byte, 100)
			if n, err := f.ReadAt(b, int64(len(large))-50); n != 50 || err != io.EOF || string(b[:n]) != large[len(large)-50:] {
				t.Errorf("at the end: %d bytes, %v", n, err)
			}
		})
	}
}

// A large file takes few requests, a look at its head a small one, and what has been
// listed is opened without one.
func TestRequests(t *testing.T) {
	s := storetest.New(t)
	s.Put(t, "set/large", []byte(pattern(6<<20)))
	s.Put(t, "set/small", []byte(pattern(1000)))
	root := open(t, s, "set").Root()
	count := func(most int64, what string, f func()) {
		t.Helper()
		before := s.Requests.Load()
		f()
		if n := s.Requests.Load() - before; n > most {
			t.Errorf("%s: %d requests, want at most %d", what, n, most)
		}
	}
	var stamp source.Stamp
	count(1, "listing", func() {
		entries, err := root.ReadDir()
		if err != nil {
			t.Fatal(err)
		}
		info, err := entries[1].Info()
		if err != nil {
			t.Fatal(err)
		}
		stamp = source.StampOf(info)
	})
	read := func() {
		f, err := root.Join("small").OpenStamped(stamp)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if b, err := io.ReadAll(f); err != nil || string(b) != pattern(1000) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	count(1, "a file that was listed", read)
	count(0, "the same from the cache", read)
	var sent int64
	breaking(s, func(server http.Handler, w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(&counting{w, &sent}, r)
	})
	count(2, "the head of a large file", func() {
		f, err := root.Join("large").Open()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.ReadAt(make([]byte, 64), 0); err != nil {
			t.Fatal(err)
		}
	})
	if sent > 40_000 {
		t.Errorf("%d bytes for 64", sent)
	}
	count(10, "a large file in small pieces", func() {
		if text, err := content(root.Join("large")); err != nil || text != pattern(6<<20) {
			t.Errorf("%d bytes, %v", len(text), err)
		}
	})
}

// A folder of many pages is listed whole, in order; a location may be a file, and a
// folder may be given by gocloud.dev's prefix.
func TestListing(t *testing.T) {
	const n = 2500
	s := storetest.New(t)
	for i := range n {
		s.Put(t, fmt.Sprintf("many/%04d", i), []byte("x"))
	}
	entries, err := open(t, s, "many").Root().ReadDir()
	if err != nil || len(entries) != n {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for i, e := range entries {
		if want := fmt.Sprintf("%04d", i); e.Name() != want {
			t.Fatalf("file %d is %s", i, e.Name())
		}
	}
	file := open(t, s, "many/0007").Root()
	if text, err := content(file); err != nil || text != "x" || file.IsDir() || file.Base() != "0007" || file.String() != "s3://sets/many/0007" {
		t.Errorf("%v: %q, %v", file, text, err)
	}
	below := open(t, s, "", "prefix", "many/").Root().Join("0008")
	if text, err := content(below); err != nil || text != "x" || below.String() != "s3://sets/many/0008" {
		t.Errorf("%v: %q, %v", below, text, err)
	}
	if !open(t, s, "").Root().Join("many").IsDir() {
		t.Error("the bucket's root has no folder")
	}
}

// counting counts the bytes of an answer.
type counting struct {
	http.ResponseWriter
	n *int64
}

func (c *counting) Write(b []byte) (int, error) {
	*c.n += int64(len(b))
	return c.ResponseWriter.Write(b)
}

func TestLocations(t *testing.T) {
	s := storetest.New(t)
	s.Put(t, "set/file", []byte("text"))
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "nowhere.json")
	for _, c := range []struct{ location, part string }{
		{"s3://bucket/x?regoin=a", "regoin"},
		{"s3://bucket/x?cache=much", `"much"`},
		{"s3://bucket/x?deadline=-1s", `"-1s"`},
		{"s3://bucket/x?use_path_style=perhaps", "perhaps"},
		{"s3://key:secret@bucket/x", "credentials in the URL"},
		{"s3:///x", "bucket"},
		{"gs://bucket/x?region=a&anonymous=true", "region"},
		{"gs://bucket/x", "nowhere.json"},
		{"hdfs://host/x", "hdfs"},
		{"file://host/x", "file:///PATH"},
		{"s3://%zz", "%zz"},
	} {
		tree, err := source.Open(t.Context(), c.location)
		if err == nil {
			tree.Close()
		}
		wantFault(t, err, c.part)
		fault, _ := errors.AsType[*source.Fault](err)
		if fault.Do == "" || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; %s", c.location, err, fault.Do)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := source.Open(t.Context(), "s3://bucket/x?region=a")
	wantFault(t, err, "no credentials")
	if text, err := content(open(t, s, "set", "anonymous", "true").Root().Join("file")); err != nil || text != "text" {
		t.Errorf("without credentials: %q, %v", text, err)
	}
	for location, absolute := range map[string]string{"s3://b/x?endpoint=http://h:1": "s3://b/x?endpoint=http://h:1", "/a/../b": "/b"} {
		if got, err := source.Absolute(location); err != nil || got != absolute {
			t.Errorf("Absolute(%q) = %q, %v", location, got, err)
		}
	}
}

// Google's store gets Google's credentials and no header of Amazon's.
func TestGoogleHeaders(t *testing.T) {
	s := storetest.New(t)
	s.Put(t, "set/file", []byte("text"))
	headers := http.Header{}
	breaking(s, func(server http.Handler, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"access_token":"tok","token_type":"Bearer","expires_in":3600}`)
			return
		}
		for name, value := range r.Header {
			headers[name] = value
		}
		server.ServeHTTP(w, r)
	})
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", write(t, "user.json",
		`{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r","token_uri":"`+s.URL+`/token"}`)+"/user.json")
	tree, err := source.Open(t.Context(), "gs://"+storetest.Bucket+"/set?cache=0&endpoint="+s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	text, err := content(tree.Root().Join("file"))
	if err != nil || text != "text" {
		t.Fatalf("%q, %v", text, err)
	}
	if headers.Get("Authorization") != "Bearer tok" {
		t.Errorf("authorization %q", headers.Get("Authorization"))
	}
	for name := range headers {
		if strings.HasPrefix(name, "X-Amz") || strings.HasPrefix(name, "Amz") {
			t.Errorf("header %s", name)
		}
	}
}
