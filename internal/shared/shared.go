// Package shared finds the data that tests read from the folder `shared`
// beside the project's checkout: small real data sets, broken inputs, golden
// values. It is test support only.
package shared

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Dir returns the path of an element under the shared data folder, for example
// Dir(t, "sets", "mr"). Where the folder is absent the test is skipped; in CI
// (the variable CI is set) its absence is a failure, since a skipped check there
// would pass unseen.
func Dir(t testing.TB, elem ...string) string {
	t.Helper()
	root, err := Root()
	if err == nil {
		path := filepath.Join(append([]string{root, "data"}, elem...)...)
		if _, err = os.Stat(path); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("shared data %v: %v; CI must provide the folder `shared` beside the checkout", elem, err)
	}
	t.Skipf("shared data %v is not here (%v); put the folder `shared` beside the checkout to run this test", elem, err)
	return ""
}

// Root returns the folder `shared` beside the module's root.
func Root() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..", "..", "shared")
	_, err := os.Stat(root)
	return root, err
}
