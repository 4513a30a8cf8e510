package sgemm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGenerated runs the generators again, by the go:generate lines of this and
// the neighbouring packages, and compares what they write with what is committed.
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
	for _, source := range []string{"kernels_amd64.go", "../vec/vec.go", "../../optim/loops.go"} {
		t.Run(filepath.Base(filepath.Dir(source))+filepath.Base(source), func(t *testing.T) {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			line := regexp.MustCompile(`(?m)^//go:generate go run -C \S*gen (\./\w+) (.*)$`).FindSubmatch(text)
			if line == nil {
				t.Fatalf("%s has no go:generate line for the generators", source)
			}
			args := strings.Fields(string(line[2]))
			// The generator runs as deep below a fresh folder as it lives below this project's
			// compute folder, so that its arguments, which it writes into the files' first line, are
			// the same.
			root := t.TempDir()
			dir := filepath.Join(root, "cpu", "sgemm", "gen")
			program := filepath.Join(root, "program")
			if out, err := run("gen", "go", "build", "-o", program, string(line[1])); err != nil {
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
		})
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
