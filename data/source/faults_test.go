package source_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"optimus/data/source"
	"optimus/data/source/storetest"
)

// halved sends half of an answer's body and cuts the connection.
type halved struct {
	http.ResponseWriter
	left int
}

func (h *halved) Write(b []byte) (int, error) {
	if len(b) < h.left {
		h.left -= len(b)
		return h.ResponseWriter.Write(b)
	}
	h.ResponseWriter.Write(b[:h.left])
	h.ResponseWriter.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// stuck sends an answer's head and nothing of its body.
type stuck struct {
	http.ResponseWriter
	ctx context.Context
}

func (s *stuck) Write([]byte) (int, error) {
	s.ResponseWriter.(http.Flusher).Flush()
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// What a store does wrong for a while is made good by asking again, and never shows in
// the bytes.
func TestRetries(t *testing.T) {
	text := pattern(300_000)
	for name, fault := range map[string]func(server http.Handler, w http.ResponseWriter, r *http.Request){
		"500": func(_ http.Handler, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"503": func(_ http.Handler, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		"429": func(_ http.Handler, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) },
		"refused": func(http.Handler, http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		},
		"cut": func(server http.Handler, w http.ResponseWriter, r *http.Request) {
			server.ServeHTTP(&halved{w, 20_000}, r)
		},
		"silent": func(_ http.Handler, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"whole": func(server http.Handler, w http.ResponseWriter, r *http.Request) { // without regard to the range
			r.Header.Del("Range")
			server.ServeHTTP(w, r)
		},
		"other range": func(server http.Handler, w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				r.Header.Set("Range", "bytes=7-100")
			}
			server.ServeHTTP(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			s.Put(t, "set/file", []byte(text))
			root := open(t, s, "set", "deadline", "2s").Root()
			var n atomic.Int64
			breaking(s, func(server http.Handler, w http.ResponseWriter, r *http.Request) {
				if n.Add(1)%2 == 0 { // every other request, the first for bytes
					fault(server, w, r)
					return
				}
				server.ServeHTTP(w, r)
			})
			for range 2 {
				f, err := root.Join("file").Open()
				if err != nil {
					t.Fatal(err)
				}
				b := make([]byte, 200_000)
				if _, err := f.ReadAt(b, 50_000); err != nil || string(b) != text[50_000:250_000] {
					t.Errorf("bytes are equal: %v; %v", string(b) == text[50_000:250_000], err)
				}
				f.Close()
			}
			if n.Load() < 3 {
				t.Errorf("%d requests: nothing was broken", n.Load())
			}
		})
	}
}

// A store that stays bad ends the read, within the deadline, with an error that says
// what it waited for.
func TestDead(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(server http.Handler, w http.ResponseWriter, r *http.Request)
		part  string
	}{
		"dead":   {func(http.Handler, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"500":    {func(_ http.Handler, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "500"},
		"silent": {func(_ http.Handler, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "sends nothing"},
		"head alone": {func(server http.Handler, w http.ResponseWriter, r *http.Request) {
			server.ServeHTTP(&stuck{w, r.Context()}, r)
		}, "sends nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			s.Put(t, "set/file", []byte(pattern(5000)))
			root := open(t, s, "set", "deadline", "200ms").Root()
			entries, err := root.ReadDir()
			if err != nil {
				t.Fatal(err)
			}
			info, err := entries[0].Info()
			if err != nil {
				t.Fatal(err)
			}
			f, err := root.Join("file").OpenStamped(source.StampOf(info))
			if err != nil {
				t.Fatal(err)
			}
			breaking(s, c.fault)
			begin := time.Now()
			_, err = f.ReadAt(make([]byte, 5000), 0)
			wantFault(t, err, "s3://sets/set/file", "read bytes 0 to 4999", "200ms", c.part)
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			_, err = root.ReadDir()
			wantFault(t, err, "s3://sets/set", "list the folder", "200ms", c.part)
			if !root.Join("nowhere").Exists() {
				t.Error("a file is said not to be there, which nobody knows")
			}
		})
	}
}

// What another try cannot help fails at once.
func TestRefused(t *testing.T) {
	s := storetest.New(t)
	s.Put(t, "set/file", []byte("text"))
	root := open(t, s, "set").Root()
	for status, part := range map[int]string{403: "refuses access", 401: "refuses access", 400: "400"} {
		var n atomic.Int64
		breaking(s, func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			w.WriteHeader(status)
		})
		_, err := root.Join("file").Open()
		wantFault(t, err, "s3://sets/set/file", part)
		if n.Load() != 1 {
			t.Errorf("%d: %d requests", status, n.Load())
		}
	}
}

// An object that changes while it is in use is an error, whether the new one has the
// same size or not, whether it was listed, opened or partly read; old and new bytes
// never come together.
func TestChanged(t *testing.T) {
	for _, size := range []int{100_000, 100_001, 10} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			s := storetest.New(t)
			old := pattern(100_000)
			s.Put(t, "set/file", []byte(old))
			root := open(t, s, "set").Root()
			entries, err := root.ReadDir()
			if err != nil {
				t.Fatal(err)
			}
			info, err := entries[0].Info()
			if err != nil {
				t.Fatal(err)
			}
			opened, err := root.Join("file").Open()
			if err != nil {
				t.Fatal(err)
			}
			head := make([]byte, 1000)
			if _, err := opened.ReadAt(head, 0); err != nil || string(head) != old[:1000] {
				t.Fatal(err)
			}
			s.Put(t, "set/file", []byte(strings.Repeat("n", size)))
			_, err = opened.ReadAt(make([]byte, 50_000), 40_000)
			wantFault(t, err, "s3://sets/set/file", "has changed since it was listed", "100000 bytes")
			listed, err := root.Join("file").OpenStamped(source.StampOf(info))
			if err != nil {
				t.Fatal(err)
			}
			_, err = listed.ReadAt(make([]byte, 50_000), 40_000)
			wantFault(t, err, "has changed")
			if text, err := content(root.Join("file")); err != nil || text != strings.Repeat("n", size) {
				t.Errorf("opened anew: %d bytes, %v", len(text), err)
			}
		})
	}
}

// Close and the context end a read that waits.
func TestEnded(t *testing.T) {
	s := storetest.New(t)
	s.Put(t, "set/file", []byte(pattern(5000)))
	for _, end := range []string{"close", "context"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		tree, err := source.Open(ctx, s.Location("set", "cache", "0"))
		if err != nil {
			t.Fatal(err)
		}
		f, err := tree.Root().Join("file").Open()
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan struct{}, 10)
		breaking(s, func(_ http.Handler, _ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-r.Context().Done()
		})
		failed := make(chan error)
		go func() {
			_, err := f.ReadAt(make([]byte, 10), 0)
			failed <- err
		}()
		<-asked
		stopped := errors.New("stopped by the user")
		if end == "context" {
			cancel(stopped)
		} else {
			tree.Close()
		}
		select {
		case err := <-failed:
			if wantFault(t, err, "read bytes"); end == "context" && !errors.Is(err, stopped) {
				t.Errorf("error %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it waits on")
		}
		s.Break.Store(nil)
		tree.Close()
		cancel(nil)
	}
}
