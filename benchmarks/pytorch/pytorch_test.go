package pytorch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"optimus/benchmarks/step"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake writes an interpreter that answers the lines of its input with lines of its
// own: a shell script.
func fake(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const hello = `{"torch":"2.1","python":"3.12.1","onednn":"3.1","blas":"MKL","capability":"AVX512","variant":"channels_last","trials":{"plain":0.5,"channels_last":0.25},"parameters":12}`

// TestAnswers: what the script says is understood; its scripts lie beside each other.
func TestAnswers(t *testing.T) {
	python := fake(t, `
test -s "$(dirname "$1")/nets.py" || exit 1
read -r config
case "$config" in *'"model":"m"'*'"batch":3'*'"threads":2'*) ;; *) echo "unexpected $config" >&2; exit 1;; esac
test "$OMP_NUM_THREADS" = 2 || exit 1
echo '`+hello+`'
read -r n
echo "{\"cpu\": 0.$n, \"wall\": 1.5, \"loss\": 2}"
read -r n
echo 'no JSON'
read -r n
echo '{"cpu": 0, "wall": 1}'
read -r n
echo 'Traceback' >&2
echo 'MemoryError: too large' >&2
`)
	tr, err := Start(t.Context(), python, Config{Model: "m", Batch: 3, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	want := Setup{Torch: "2.1", Python: "3.12.1", OneDNN: "3.1", BLAS: "MKL", Capability: "AVX512", Variant: "channels_last",
		Trials: map[string]float64{"plain": 0.5, "channels_last": 0.25}, Parameters: 12}
	if diff := cmp.Diff(want, tr.Setup); diff != "" {
		t.Error(diff)
	}
	if got := tr.Setup.String(); got != "PyTorch 2.1, oneDNN 3.1, MKL, own kernels AVX512" {
		t.Errorf("versions %q", got)
	}
	turn, err := tr.Turn(7)
	if diff := cmp.Diff(step.Turn{Steps: 7, CPU: 700 * time.Millisecond, Wall: 1500 * time.Millisecond}, turn); diff != "" || err != nil {
		t.Errorf("%s, error %v", diff, err)
	}
	for _, want := range []string{`its answer "no JSON"`, "must be positive", "MemoryError: too large"} {
		if _, err := tr.Turn(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(tr.folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the scripts are still there: %v", err)
	}
}

func TestStartFails(t *testing.T) {
	for want, body := range map[string]string{
		"without a word":        "exit 0",
		"ModuleNotFoundError":   "echo 'ModuleNotFoundError: x' >&2; exit 1",
		"not have the model":    `read -r c; echo '{"missing": true}'`,
		"its answer \"[1]\"":    "read -r c; echo '[1]'; read -r c",
		"start PyTorch for m: ": "exit 3",
	} {
		if _, err := Start(t.Context(), fake(t, body), Config{Model: "m"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", body, err, want)
		}
	}
	if _, err := Start(t.Context(), fake(t, `read -r c; echo '{"missing": true}'`), Config{}); !errors.Is(err, ErrNoModel) {
		t.Errorf("a model that the script does not have: error %v", err)
	}
}

// TestCancelled: a child that never answers ends with the context.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, fake(t, "read -r c; exec sleep 600"), Config{Model: "m"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestFind(t *testing.T) {
	good, bad := fake(t, "exit 0"), fake(t, "echo 'ModuleNotFoundError: no torch' >&2; exit 1")
	if got, err := Find(t.Context(), good); got != good || err != nil {
		t.Errorf("found %q, %v", got, err)
	}
	if _, err := Find(t.Context(), bad); !errors.Is(err, ErrAbsent) || !strings.Contains(err.Error(), bad+": ModuleNotFoundError: no torch") || !strings.Contains(err.Error(), "apt-get") {
		t.Errorf("error %v", err)
	}
	// The folder of its own comes first.
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("HOME", home)
	folder, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(folder, "bin", "python")
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(good, own); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(t.Context(), ""); got != own || err != nil {
		t.Errorf("found %q, %v, want %q", got, err, own)
	}
}

// TestTrain makes steps of a small model with the real PyTorch, where it is installed.
func TestTrain(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	python, err := Find(t.Context(), "")
	if err != nil {
		t.Skip(err)
	}
	s, err := step.New(step.Options{Workload: "cifar-small", Batch: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tr, err := Start(t.Context(), python, Config{Model: "cifar-small", Batch: s.Batch, Threads: 1, Inputs: s.Inputs(), Optimizer: s.Optimizer})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if got, want := tr.Setup.Parameters, s.Program.Parameters(); got != want || len(tr.Setup.Trials) != 2 {
		t.Errorf("%d parameters, want %d; trials %v", got, want, tr.Setup.Trials)
	}
	turn, err := tr.Turn(3)
	if err != nil || turn.Steps != 3 || turn.CPU <= 0 {
		t.Errorf("%+v, %v", turn, err)
	}
}
