// Optimus trains models on parameter servers and workers whose numbers change
// while a job runs. `optimus --help` lists its verbs; each has a file here that
// reads flags, calls the package that does the work, and prints.
//
// What a person asked for goes to standard output, as a table or, with -o, in a
// form for programs. An error is one line on standard error,
//
//	optimus VERB: what: cause; what to do
//
// and nothing on standard output. The exit status is 0 on success only, 2 for a
// command line that cannot mean anything, 1 for what fails at run time, 130 when
// interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"optimus/internal/failure"
)

// version is the program's own, of CHANGELOG.md.
const version = "0.1.0"

func main() {
	ctx, stop := interruptible()
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// interruptible returns a context that the first SIGINT, SIGTERM or, unless the
// program was started to ignore it (nohup), SIGHUP ends, naming it as the cause: a
// job then writes a checkpoint. The second ends the program at once, and with it
// its children; but not a SIGHUP, which a terminal that closes may send twice.
func interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		for s := range signals {
			switch number, _ := s.(syscall.Signal); {
			case ctx.Err() == nil:
				cancel(fmt.Errorf("interrupted by %s", unix.SignalName(number)))
			case number != syscall.SIGHUP:
				fmt.Fprintln(os.Stderr, "optimus: interrupted again: it ends at once, and what was not saved is lost")
				os.Exit(130)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// run is the program but for its globals; it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := newRoot(a)
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if !a.started { // refused before the verb began
		err = usageError(c, err, "")
	}
	fmt.Fprintf(stderr, "%s: %v\n", c.CommandPath(), unprefixed(err, verb(c)))
	return failure.ExitCode(err)
}

// unprefixed is err as one line, without its operation where that is the verb,
// which stands before every error.
func unprefixed(err error, verb string) error {
	one := failure.E("", "", "", err, "")
	if f, ok := errors.AsType[*failure.Error](err); ok && f.Op == verb && f.Error() == one.Error() {
		return failure.E("", f.Subject, f.Kind, f.Cause, f.Do)
	}
	return one
}
