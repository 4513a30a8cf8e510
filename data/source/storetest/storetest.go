// Package storetest is an object store for tests: a real server of Amazon S3's
// protocol on this machine, whose answers a test may break. It is test support only.
package storetest

import (
	"bytes"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Bucket is the name of the store's only bucket.
const Bucket = "sets"

// Store is a running store.
type Store struct {
	URL      string // of its endpoint
	Requests atomic.Int64
	// Break answers a request in place of the server, or wraps its answer; nil leaves
	// all alone.
	Break atomic.Pointer[func(server http.Handler, w http.ResponseWriter, r *http.Request)]

	objects *s3mem.Backend
}

// New starts a store that is stopped at the test's end, and sets the environment for
// it.
func New(t testing.TB) *Store {
	t.Helper()
	for name, value := range Environment() {
		t.Setenv(name, value)
	}
	return Start(t)
}

// Environment are the variables with which the store is used.
func Environment() map[string]string {
	return map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull}
}

// Start starts a store that is stopped at the test's end.
func Start(t testing.TB) *Store {
	t.Helper()
	s := &Store{objects: s3mem.New()}
	if err := s.objects.CreateBucket(Bucket); err != nil {
		t.Fatal(err)
	}
	handler := gofakes3.New(s.objects, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		if f := s.Break.Load(); f != nil {
			(*f)(handler, w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of what Break breaks
	server.Start()
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Location is the URL of a folder in the store, with parameters in pairs.
func (s *Store) Location(folder string, parameters ...string) string {
	q := url.Values{"endpoint": {s.URL}, "region": {"us-east-1"}}
	for i := 0; i < len(parameters); i += 2 {
		q.Set(parameters[i], parameters[i+1])
	}
	return "s3://" + Bucket + "/" + folder + "?" + q.Encode()
}

// Put puts an object, or its next version.
func (s *Store) Put(t testing.TB, key string, content []byte) {
	t.Helper()
	if err := s.put(key, content); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) put(key string, content []byte) error {
	_, err := s.objects.PutObject(Bucket, key, map[string]string{}, bytes.NewReader(content), int64(len(content)), nil)
	return err
}

// PutTree puts the regular files of a folder below another in the store.
func (s *Store) PutTree(dir, folder string) error {
	files := os.DirFS(dir)
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err == nil {
			err = s.put(path.Join(folder, name), content)
		}
		return err
	})
}
