package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"optimus/internal/failure"
	"optimus/internal/rpc"
	"optimus/internal/rundir"
	"optimus/internal/suggest"
	"optimus/spec"
)

// openJob finds the folder of a job.
func openJob(op, name string) (*rundir.Dir, error) {
	d, err := rundir.Open("", name)
	if k := failure.KindOf(err); k == failure.NotFound || k == failure.InvalidArgument {
		return nil, unknown(op, "no job", name)
	}
	return d, err
}

// unknown says that nothing of a kind, such as "no job", has a name.
func unknown(op, what, name string) error {
	var names []string
	jobs, _ := rundir.List("") // only for the advice
	for _, d := range jobs {
		names = append(names, d.Name)
	}
	do := suggest.Meant(name, names)
	if strings.Contains(name, "/") {
		do = "" // a folder was meant
	}
	return failure.E(op, "", failure.NotFound, fmt.Errorf("%s is named %q", what, name), do)
}

// connect returns a client of a running job. The error for one that does not run
// says how it ended.
func connect(ctx context.Context, op, name string) (*rpc.Client, error) {
	d, err := openJob(op, name)
	if err != nil {
		return nil, err
	}
	socket, err := d.Socket()
	if err != nil {
		return nil, err
	}
	client, err := rpc.Dial(ctx, socket)
	if errors.Is(err, rpc.ErrNotRunning) {
		return nil, notRunning(op, d)
	}
	return client, err
}

// notRunning says of a job that nothing can be asked of it, and why.
func notRunning(op string, d *rundir.Dir) error {
	s, err := endedStatus(d)
	if err != nil {
		return failure.E(op, "", failure.Unavailable, fmt.Errorf("job %s is not running: %w", d.Name, err), "")
	}
	how := fmt.Sprintf("it %s at step %d", ended(s.State), s.Step)
	if s.State != spec.Finished && s.Reason != "" {
		how += " (" + s.Reason + ")"
	}
	do := "go on with `optimus train --resume " + d.Name + "`"
	switch {
	case s.LastCheckpoint == "":
		do = "it has no checkpoint to go on from"
	case s.State == spec.Finished:
		do = "to train on, resume it with more --steps or --epochs"
	}
	return failure.E(op, "", failure.Unavailable, fmt.Errorf("job %s is not running: %s", d.Name, how), do)
}
