// Optimus trains models on parameter servers and workers whose numbers change
// while a job runs. `optimus --help` lists its verbs; each has a file here that
// reads flags, calls the package that does the work, and prints.
//
// What a person asked for goes to standard output, as a table or, with -o, in a
// form for programs. An error is one line on standard error and nothing on
// standard output. The exit status is 0 on success only, 2 for a command line
// that cannot mean anything, 1 for what fails at run time, 130 when interrupted.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"optimus/internal/failure"
)

// version is the program's own, of CHANGELOG.md.
const version = "0.1.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills at once
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
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
	err = failure.E("", "", "", err, "") // one line
	fmt.Fprintf(stderr, "optimus: %v\n", err)
	return failure.ExitCode(err)
}
