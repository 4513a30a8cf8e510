package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"optimus/internal/rundir"
	"optimus/paa"
	"optimus/spec"
)

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"optimus": main})
}

// leakChecked fails a run of the tests that leaves goroutines behind.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// TestScripts runs the sessions of testdata. Besides testscript's commands they
// have
//
//	exits N COMMAND ...    the command's exit status is N
//	oneline                the last command printed nothing on standard output and one line on standard error
//	json PATH VALUE        the value at a path (a.b.0, a.len for a length) of the last command's JSON
//	save ROOT SEQ STEP     writes a checkpoint of two shards
//	flip FILE OFFSET       changes one byte; a negative offset counts from the end
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else each race-built command sleeps a second
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "oneline": oneLine, "json": jsonValue, "save": save, "flip": flip,
		},
		Condition: func(name string) (bool, error) {
			if name != "mounts" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return mounts(), nil
		},
	})
}

// mounts reports whether a small disk can be mounted in a namespace of its own,
// which some systems forbid.
func mounts() bool {
	return exec.Command("unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt").Run() == nil
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N COMMAND ...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s exits %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func oneLine(ts *testscript.TestScript, neg bool, args []string) {
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("standard output has %q beside an error", out)
	}
	text := ts.ReadFile("stderr")
	if !errorForm.MatchString(text) {
		ts.Fatalf("standard error is %q, not one line \"optimus VERB: …\"", text)
	}
}

// errorForm is the form of every error: one line that begins with the verb.
var errorForm = regexp.MustCompile(`^optimus( [a-z-]+)*: [^\n]+\n$`)

// Errors have one form, "optimus VERB: what: cause; what to do", wherever they
// are found: by the flags, by the verb, or by a package below.
func TestErrors(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"", 2, "optimus: missing command; see `optimus --help`"},
		{"trian", 2, `optimus: unknown command "trian"; did you mean "train"?`},
		{"train", 2, "optimus train: missing WORKLOAD; `optimus models` lists them"},
		{"train cnn-rnd", 2, "optimus train: unknown workload \"cnn-rnd\"; did you mean \"cnn-rand\"?"},
		{"train cnn-rand --servers 0", 2, `optimus train: --servers is "0"; allowed: N or MIN:MAX with 1 <= MIN <= MAX <= 4096`},
		{"train cnn-rand --workers 5:2", 2, `optimus train: --workers is "5:2"; allowed: N or MIN:MAX with 1 <= MIN <= MAX <= 4096`},
		{"train cnn-rand --steps 99999999999999999999", 2, "optimus train: --steps is \"99999999999999999999\"; allowed: a whole number of up to 18 digits"},
		{"train cnn-rand --steps -1", 2, "optimus train: --steps is -1; allowed: at least 0; see `optimus train --help`"},
		{"train cnn-rand --batch 0", 2, "optimus train: --batch is 0; allowed: at least 1; see `optimus train --help`"},
		{"train cnn-rand --job A --momentum 2 --max-time -1s", 2, "optimus train: --job is \"A\"; allowed: 1 to 50 characters of a-z, 0-9 and '-', first a letter, last a letter or digit; " +
			"--max-time is -1s; allowed: a positive duration such as 90s or 2h, or 0 for no limit; --momentum is 2; allowed: at least 0 and below 1; see `optimus train --help`"},
		{"train cnn-rand --seed -1", 2, `optimus train: --seed is "-1"; allowed: 0 to 18446744073709551615`},
		{"train cnn-rand --steps 2147483648", 2, "optimus train: --steps is 2147483648; allowed: 0 to 2147483647; see `optimus train --help`"},
		{"train cnn-rand --lr fast", 2, `optimus train: --lr is "fast"; allowed: a number`},
		{"train cnn-rand --max-time 5", 2, `optimus train: --max-time is "5"; allowed: a duration such as 90s or 2h`},
		{"train cnn-rand --verbose=7", 2, `optimus train: --verbose is "7"; allowed: true or false`},
		{"train cnn-rand --job", 2, "optimus train: flag needs an argument: --job; see `optimus train --help`"},
		{"train cnn-rand --data nowhere", 1, ""},
		{"train --resume nobody", 1, `optimus train: resume: no job and no folder is named "nobody"`},
		{"rescale a --servers x", 2, `optimus rescale: --servers is "x"; allowed: a whole number of up to 18 digits`},
		{"rescale a --servers 5000", 2, "optimus rescale: --servers is 5000; allowed: 1 to 4096; see `optimus rescale --help`"},
		{"rescale a --servers 2 --timeout -1s", 2, "optimus rescale: --timeout is -1s; allowed: a positive duration such as 90s; see `optimus rescale --help`"},
		{"rescale a --servers 2", 1, `optimus rescale: no job is named "a"`},
		{"status a/b", 1, `optimus status: no job is named "a/b"`},
		{"status --watch", 2, "optimus status: missing JOB, which --watch needs; see `optimus status --help`"},
		{"stop", 2, "optimus stop: missing JOB; see `optimus stop --help`"},
		{"stop ./a", 1, `optimus stop: no job is named "./a"`},
		{"stop a", 1, `optimus stop: no job is named "a"`},
		{"checkpoint now a", 1, `optimus checkpoint now: no job is named "a"`},
		{"checkpoint verify a", 1, `optimus checkpoint verify: no job and no folder is named "a"`},
		{"fit", 2, "optimus fit: missing command; see `optimus fit --help`"},
		{"fit loss", 2, "optimus fit loss: missing FILE; see `optimus fit loss --help`"},
		{"fit loss nobody", 1, `optimus fit loss: no job and no file is named "nobody"`},
		{"fit loss a --examples -1", 2, "optimus fit loss: --examples is -1; allowed: at least 1, or 0 for what the job says"},
		{"models -o jsn", 2, `optimus models: --output is "jsn"; allowed: table|wide|json|yaml|name`},
		{"plan vgg-16", 2, "optimus plan: missing --servers; see `optimus plan --help`"},
		{"plan vgg16 --servers 2", 2, "optimus plan: unknown model \"vgg16\"; did you mean \"vgg-16\"?"},
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), strings.Fields(tt.args), strings.NewReader(""), &stdout, &stderr)
		if code != tt.code || stdout.Len() > 0 || !errorForm.MatchString(stderr.String()) || tt.want != "" && stderr.String() != tt.want+"\n" {
			t.Errorf("optimus %s: status %d, output %q, error\n%s\nwant status %d and\n%s", tt.args, code, stdout.String(), stderr.String(), tt.code, tt.want)
		}
	}
	if jobs, err := rundir.List(""); err != nil || len(jobs) > 0 {
		t.Errorf("refused commands left %d jobs, %v", len(jobs), err)
	}
}

func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: json PATH VALUE")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for step := range strings.SplitSeq(args[0], ".") {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				ts.Fatalf("%s: no key %q", args[0], step)
			}
			v = next
		case []any:
			if step == "len" {
				v = len(at)
				continue
			}
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				ts.Fatalf("%s: no element %q of %d", args[0], step, len(at))
			}
			v = at[i]
		default:
			ts.Fatalf("%s: nothing below %v", args[0], v)
		}
	}
	if got, ok := v.(float64); ok {
		v = strconv.FormatFloat(got, 'f', -1, 64)
	}
	if got := fmt.Sprint(v); got != args[1] {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

// BO-52: at every level of the command tree, and for every command, a mistyped
// command, a flag that does not exist and an argument too many are usage errors:
// status 2, one line on standard error, nothing on standard output.
func TestMistyped(t *testing.T) {
	var calls [][]string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		calls = append(calls, append(slices.Clone(path), "--no-such-flag"))
		switch {
		case c.HasSubCommands():
			calls = append(calls, path, append(slices.Clone(path), "no-such-command"))
		default:
			calls = append(calls, append(slices.Clone(path), "one", "too", "many"))
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&app{}))
	if len(calls) < 10 {
		t.Fatalf("only %d calls to try; the tree was not walked", len(calls))
	}
	for _, args := range calls {
		var stdout, stderr strings.Builder
		code := run(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
		if code != 2 || stdout.Len() > 0 || !errorForm.MatchString(stderr.String()) {
			t.Errorf("optimus %v: status %d, output %q, error %q", args, code, stdout.String(), stderr.String())
		}
	}
}

// Every command says what it does, and every flag what it is for.
func TestHelpIsComplete(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		var out, stderr strings.Builder
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if code := run(context.Background(), args, strings.NewReader(""), &out, &stderr); code != 0 || stderr.Len() > 0 {
			t.Errorf("optimus %v: status %d, error %q", args, code, stderr.String())
		}
		if c.Short == "" || !strings.Contains(out.String(), "Usage:") {
			t.Errorf("optimus %v: short description %q, help %q", args, c.Short, out.String())
		}
		for line := range strings.Lines(c.LocalFlags().FlagUsages()) {
			if fields := strings.Fields(line); len(fields) < 3 {
				t.Errorf("optimus %v: flag without a description: %q", args, line)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&app{}))
}

func TestHumanNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536 << 20: "1.5 GiB"} {
		if got := humanBytes(n); got != want {
			t.Errorf("humanBytes(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 9999: "9999", 10000: "10.0 k", 25549486: "25.55 M", 2e9: "2.00 G"} {
		if got := humanCount(n); got != want {
			t.Errorf("humanCount(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestHumanAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1999 * time.Millisecond: "1s", 119 * time.Second: "119s", 2*time.Minute + 5*time.Second: "2m5s",
		10 * time.Minute: "10m", 119 * time.Minute: "119m", 2*time.Hour + 3*time.Minute: "2h3m", 47 * time.Hour: "47h", 49 * time.Hour: "2d",
	} {
		if got := humanAge(d); got != want {
			t.Errorf("humanAge(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestHumanETA(t *testing.T) {
	for s, want := range map[spec.Number]string{0: "0s", 59.9: "59s", 1e9: "11574d", 1e18: "11574d", spec.Number(math.Inf(1)): "11574d"} {
		if got := humanETA(s); got != want {
			t.Errorf("humanETA(%v) = %q, want %q", s, got, want)
		}
	}
}

// A job's file and the planner know the same rules.
func TestRulesAgree(t *testing.T) {
	for _, rule := range paa.Rules() {
		job := spec.Default()
		job.Name, job.Workload, job.Assignment = "a", "a", spec.Rule(rule)
		if err := job.Validate(); err != nil {
			t.Errorf("rule %s of package paa: %v", rule, err)
		}
	}
}

// An interrupted verb says so and exits as shells expect.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var stdout, stderr strings.Builder
	code := run(ctx, []string{"doctor"}, strings.NewReader(""), &stdout, &stderr)
	if code != 130 || stdout.Len() > 0 || stderr.String() != "optimus doctor: context canceled\n" {
		t.Errorf("status %d, output %q, error %q", code, stdout.String(), stderr.String())
	}
}

// A job that is interrupted before it begins leaves nothing.
func TestInterruptedStart(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted by SIGINT"))
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var stdout, stderr strings.Builder
	code := run(ctx, []string{"train", "cnn-rand", "--job", "early"}, strings.NewReader(""), &stdout, &stderr)
	if code != 130 || stdout.Len() > 0 || stderr.String() != "optimus train: early: interrupted by SIGINT; it had not begun: start it again\n" {
		t.Errorf("status %d, output %q, error %q", code, stdout.String(), stderr.String())
	}
	if jobs, err := rundir.List(""); err != nil || len(jobs) > 0 {
		t.Errorf("jobs %v, %v", jobs, err)
	}
}

// failingWriter is a standard output that is full.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestFullOutputFails(t *testing.T) {
	for _, format := range formats() {
		var stderr strings.Builder
		args := []string{"plan", "dssm", "--servers", "2", "-o", format}
		if code := run(context.Background(), args, strings.NewReader(""), failingWriter{}, &stderr); code != 1 {
			t.Errorf("-o %s: status %d (%s), want 1: nothing was printed", format, code, stderr.String())
		}
	}
}
