package cpu

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGenerated runs the generators again, by the go:generate lines of the packages
// that hold what they write, and compares it with what is committed.
func TestGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the generators; run without -short")
	}
	if out, err := run("gen", "go", "mod", "download"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("fetch the generator's modules: %v; CI must be able to, or hold them in its cache\n%s", err, out)
		}
		t.Skipf("the generator's modules cannot be fetched (%v); what is committed was not compared", err)
	}
	found := 0
	for _, pattern := range []string{"*/*.go", "../optim/*.go"} {
		sources, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range directive.FindAllSubmatch(text, -1) {
				found++
				t.Run(string(line[1]), func(t *testing.T) { regenerate(t, string(line[1]), strings.Fields(string(line[2]))) })
			}
		}
	}
	if generators, err := filepath.Glob("gen/*/main.go"); err != nil || found != len(generators) {
		t.Errorf("%d go:generate lines for %d generators, error %v", found, len(generators), err)
	}
}

var directive = regexp.MustCompile(`(?m)^//go:generate go run -C \S*gen (\./\w+) (.*)$`)

// regenerate runs one generator. It runs as deep below a fresh folder as it lives
// below the compute folder, so that its arguments, which it writes into the first
// line of its files, are the same.
func regenerate(t *testing.T, generator string, args []string) {
	root := t.TempDir()
	dir := filepath.Join(root, "cpu", "gen")
	program := filepath.Join(root, "program")
	if out, err := run("gen", "go", "build", "-o", program, generator); err != nil {
		t.Fatalf("build the generator: %v\n%s", err, out)
	}
	var files []string
	for i, a := range args[:len(args)-1] {
		if a == "-out" || a == "-stubs" {
			files = append(files, args[i+1])
		}
	}
	for _, f := range append(files, "x") {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run(dir, program, args...); err != nil {
		t.Fatalf("run the generator: %v\n%s", err, out)
	}
	for _, f := range files {
		compare(t, filepath.Join("gen", f), filepath.Join(dir, f))
	}
}

func compare(t *testing.T, committed, made string) {
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(made)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is not what its generator writes; run `go generate` in its package", committed)
	}
}

func run(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	return cmd.CombinedOutput()
}
