package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"optimus/internal/failure"
	"optimus/internal/suggest"
	"optimus/models"
)

// benchProgram does the work of the verb. It opens OpenBLAS and oneDNN, for which it
// is linked with libc; this program is not.
const benchProgram = "optimus-bench"

func benchCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench WHAT [NAME]",
		Short: "Measure how fast this machine computes",
		Long: `Measure how fast this machine computes, against what is installed. WHAT is

  gemm         matrix products, against OpenBLAS
  conv         convolutions of ResNet-50, against oneDNN
  model NAME   a training step of a workload, or of all, against PyTorch
  scheduler    a round of the scheduler, against the figures of its paper
  all          all of these

Ratios above 1 mean that optimus is faster. The program optimus-bench does the work:
it is looked for beside this one, on the PATH, and else built from a checkout of the
sources around the current folder.`,
		RunE: func(c *cobra.Command, args []string) error { return a.bench(c, args) },
	}
	f := c.Flags()
	f.Int("batch", 0, "examples in a step (default: the workload's, or a worker's share of it)")
	f.String("size", "", "size of the workload, tiny without a comparison (default: the paper's)")
	f.IntSlice("threads", []int{1}, "threads of a step, such as 1,2")
	f.Int("rounds", 5, "turns of each side")
	f.String("python", "", "Python interpreter that has PyTorch (default: looked for)")
	return c
}

// bench replaces this process by the program that measures, so that arguments,
// streams, signals and the exit status are that program's.
func (a *app) bench(c *cobra.Command, args []string) error {
	if err := a.checkBench(c, args); err != nil {
		return err
	}
	path, err := findBench(c.Context())
	if err != nil {
		return failure.E("bench", "", "", err, "")
	}
	argv := append([]string{benchProgram}, args...)
	c.Flags().Visit(func(f *pflag.Flag) {
		argv = append(argv, "--"+f.Name+"="+strings.Trim(f.Value.String(), "[]"))
	})
	return failure.E("bench", path, "", unix.Exec(path, argv, os.Environ()), "") // returns only if it fails
}

// checkBench refuses what can never work before anything is built.
func (a *app) checkBench(c *cobra.Command, args []string) error {
	subjects := []string{"gemm", "conv", "model", "scheduler", "all"}
	switch what := args[0]; {
	case !slices.Contains(subjects, what):
		_, err := suggest.Find(what, subjects, func(s string) string { return s }, errors.New("unknown measurement"))
		return usageError(c, err, "")
	case what == "model" && len(args) == 1:
		return usageError(c, errors.New("missing NAME"), "`optimus models` lists them; all stands for all of them")
	case what != "model" && len(args) > 1:
		return usageError(c, fmt.Errorf("unexpected argument %q", args[1]), "")
	case what == "model" && args[1] != "all":
		if _, err := models.Lookup(args[1]); err != nil {
			return usageError(c, err, "")
		}
	}
	if a.format != "" && a.format != asTable && a.format != asJSON {
		return usageError(c, fmt.Errorf("--output is %q", a.format.String()), "allowed: table|json")
	}
	return nil
}

// findBench returns the path of the program, which it may build.
func findBench(ctx context.Context) (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), benchProgram)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	if path, err := exec.LookPath(benchProgram); err == nil {
		return path, nil
	}
	root, ok := checkout()
	if !ok {
		return "", failure.E("", "", failure.NotFound, fmt.Errorf("no %s beside this program or on the PATH", benchProgram),
			"run it inside a checkout of the sources, or put one there with `go build -o "+benchProgram+" ./benchmarks/bench`")
	}
	return buildBench(ctx, root)
}

// checkout returns the folder of the project's sources around the current one.
func checkout() (string, bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if first, _, _ := strings.Cut(string(text), "\n"); err == nil && strings.TrimSpace(first) == "module optimus" {
			return dir, true
		}
		if dir == filepath.Dir(dir) {
			return "", false
		}
		dir = filepath.Dir(dir)
	}
}

// buildBench builds the program into the user's cache. (go run would hide its exit status.)
func buildBench(ctx context.Context, root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "optimus", benchProgram)
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Minute, errors.New("go build did not end within 10 minutes"))
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./benchmarks/bench")
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", failure.E("build", "./benchmarks/bench", "", errors.Join(err, errors.New(strings.TrimSpace(said.String()))), "")
	}
	return path, nil
}
