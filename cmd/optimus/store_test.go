package main

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"optimus/data/source/storetest"
)

// TestStoreScripts runs the sessions of testdata/store, which have a store for
// objects: $STORE is the URL of its bucket and $PARAMETERS those of a URL. Besides the
// commands of TestScripts they have
//
//	put DIR FOLDER    puts the files of a folder below another in the store
//	fails N           the store answers N requests and then fails; -1 for never
func TestStoreScripts(t *testing.T) {
	store := storetest.Start(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/store",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			for name, value := range storetest.Environment() {
				e.Setenv(name, value)
			}
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("XDG_CACHE_HOME", e.WorkDir+"/cache")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			e.Setenv("STORE", "s3://"+storetest.Bucket)
			e.Setenv("PARAMETERS", url.Values{"endpoint": {store.URL}, "region": {"us-east-1"}, "cache": {"50MB"}}.Encode())
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "oneline": oneLine, "json": jsonValue,
			"put": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 2 {
					ts.Fatalf("usage: put DIR FOLDER")
				}
				ts.Check(store.PutTree(ts.MkAbs(args[0]), args[1]))
			},
			"fails": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: fails N")
				}
				n, err := strconv.ParseInt(args[0], 10, 64)
				ts.Check(err)
				store.Break.Store(nil)
				if n < 0 {
					return
				}
				last := store.Requests.Load() + n
				f := func(server http.Handler, w http.ResponseWriter, r *http.Request) {
					if store.Requests.Load() > last {
						w.WriteHeader(http.StatusServiceUnavailable)
						return
					}
					server.ServeHTTP(w, r)
				}
				store.Break.Store(&f)
			},
		},
	})
}
