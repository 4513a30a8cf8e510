package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/internal/rundir"
)

// The outcomes of a check, from good to bad.
const (
	checkOK   = "ok"
	checkWarn = "warn" // jobs run, but slower or not all of them
	checkFail = "fail" // jobs fail
)

// check is one thing that the doctor looked at.
type check struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	Do     string `json:"do,omitempty"` // what to do about it, unless ok
}

func ok(detail string, args ...any) check {
	return check{Status: checkOK, Detail: fmt.Sprintf(detail, args...)}
}

func warn(do, detail string, args ...any) check {
	return check{Status: checkWarn, Detail: fmt.Sprintf(detail, args...), Do: do}
}

// fail keeps the advice of an error that has its own.
func fail(do string, err error) check {
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Do != "" {
		bare := *e
		bare.Do, do, err = "", e.Do, &bare
	}
	return check{Status: checkFail, Detail: err.Error(), Do: do}
}

// examination is one named check to make.
type examination struct {
	name string
	look func(context.Context) check
}

// examinations lists all checks in the order of the report, for the folder of
// jobs. Those that can be
// made are made for real: bytes go through sockets, a file is synced, a child
// runs.
func examinations(jobs string) []examination {
	return []examination{
		{"cores", checkCores},
		{"cpu level", checkLevel},
		{"memory", checkMemory},
		{"open files", checkOpenFiles},
		{"state folder", func(context.Context) check { return checkFolder(jobs) }},
		{"disk space", func(context.Context) check { return checkDisk(jobs) }},
		{"loopback tcp v4", func(ctx context.Context) check { return checkTCP(ctx, "tcp4", "127.0.0.1:0") }},
		{"loopback tcp v6", func(ctx context.Context) check { return softly(checkTCP(ctx, "tcp6", "[::1]:0")) }},
		{"unix sockets", func(ctx context.Context) check { return checkUnix(ctx, jobs) }},
		{"child processes", checkChild},
	}
}

// softly turns a failure into a warning, for what jobs do without.
func softly(c check) check {
	if c.Status == checkFail {
		c.Status = checkWarn
	}
	return c
}

// patience bounds a check.
const patience = 20 * time.Second

func doctorCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that this machine can run jobs",
		Long: `Check that this machine can run jobs: processor, memory, limits, disk, sockets
and child processes, each by trying it. The exit status is 1 if a check fails.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.doctor(c.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	jobs, err := rundir.DefaultRoot()
	if err != nil {
		return failure.E("doctor", "", "", err, "")
	}
	report := struct {
		Status string  `json:"status"` // the worst of the checks
		Checks []check `json:"checks"`
	}{Status: checkOK}
	t := table{columns: []string{"CHECK", "STATUS", "DETAIL", "DO"}}
	failed := 0
	for _, e := range examinations(jobs) {
		within, cancel := context.WithTimeout(ctx, patience)
		c := e.look(within)
		cancel()
		if err := ctx.Err(); err != nil {
			return failure.E("doctor", "", failure.Canceled, err, "")
		}
		c.Name = e.name
		switch {
		case c.Status == checkFail:
			failed++
			report.Status = checkFail
		case c.Status == checkWarn && report.Status == checkOK:
			report.Status = checkWarn
		}
		report.Checks = append(report.Checks, c)
		t.rows = append(t.rows, []string{c.Name, c.Status, c.Detail, c.Do})
	}
	if err := a.print(report, t); err != nil {
		return err
	}
	if failed > 0 {
		return failure.E("doctor", "", failure.Unavailable, fmt.Errorf("%d of %d checks failed", failed, len(report.Checks)), "do what the report says")
	}
	return nil
}

// echo sends text through both directions of a fresh connection: what listens
// returns what it reads.
func echo(ctx context.Context, accept func() (io.ReadWriteCloser, error), dial func(context.Context) (io.ReadWriteCloser, error)) error {
	const text = "optimus"
	served := make(chan error, 1)
	go func() {
		conn, err := accept()
		if err == nil {
			defer conn.Close()
			_, err = io.CopyN(conn, conn, int64(len(text)))
		}
		served <- err
	}()
	conn, err := dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return err
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if string(got) != text {
		return fmt.Errorf("sent %q, %q came back", text, got)
	}
	return <-served
}
