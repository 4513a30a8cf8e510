package pytorch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrAbsent is wrapped by Find's error.
var ErrAbsent = errors.New("no Python with PyTorch")

// Folder is where PyTorch may be installed for this comparison alone, as a virtual environment of Python.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "optimus", "pytorch"), nil
}

// Find returns a Python interpreter that has PyTorch: the one named or, for "", the
// one in Folder, else the system's. The error says how to install it.
func Find(ctx context.Context, named string) (string, error) {
	candidates := []string{named}
	if named == "" {
		candidates = []string{"/usr/bin/python3", "python3"}
		if folder, err := Folder(); err == nil {
			candidates = append([]string{filepath.Join(folder, "bin", "python")}, candidates...)
		}
	}
	var tried []string
	for _, c := range candidates {
		err := hasTorch(ctx, c)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		tried = append(tried, fmt.Sprintf("%s: %v", c, err))
	}
	return "", fmt.Errorf("%w (%s); on Debian: apt-get install --no-install-recommends python3-torch libopenblas0-pthread; elsewhere see benchmarks/pytorch/README.md", ErrAbsent, strings.Join(tried, "; "))
}

// importing bounds the import of PyTorch: some gigabytes, the first time from a disk.
const importing = 3 * time.Minute

// hasTorch imports PyTorch in the interpreter.
func hasTorch(ctx context.Context, interpreter string) error {
	ctx, cancel := context.WithTimeout(ctx, importing)
	defer cancel()
	path, err := exec.LookPath(interpreter)
	if err != nil {
		return errors.New("not there")
	}
	cmd := exec.CommandContext(ctx, path, "-c", "import torch")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("did not import torch within %v", importing)
	}
	if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); lines[len(lines)-1] != "" {
		return errors.New(lines[len(lines)-1])
	}
	return err
}
