package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"optimus/internal/rpc"
	"optimus/internal/rundir"
	"optimus/spec"
)

func statusCommand(a *app) *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:   "status [JOB]",
		Short: "Show how jobs are doing",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && watch {
				return usageError(c, errors.New("missing JOB, which --watch needs"), "")
			}
			if len(args) == 0 {
				return a.statusOfAll(c.Context())
			}
			d, err := openJob("status", args[0])
			if err != nil {
				return err
			}
			if watch {
				return a.watch(c.Context(), d)
			}
			s, err := statusOf(c.Context(), d)
			if err != nil {
				return err
			}
			return a.printStatus(s)
		},
	}
	c.Flags().BoolVar(&watch, "watch", false, "go on until the job ends, a line for each change")
	return c
}

// answerTime is how long a job may take to tell its status.
const answerTime = 5 * time.Second

// statusOf asks a running job, or reads how one that ended was left.
func statusOf(ctx context.Context, d *rundir.Dir) (s spec.Status, err error) {
	socket, err := d.Socket()
	if err != nil {
		return s, err
	}
	client, err := rpc.Dial(ctx, socket)
	if errors.Is(err, rpc.ErrNotRunning) {
		return endedStatus(d)
	}
	if err != nil {
		return s, err
	}
	defer client.Close()
	within, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r, err := client.Status(within, &rpc.StatusRequest{})
	switch {
	case err == nil:
		return s, json.Unmarshal(r.StatusJson, &s)
	case errors.Is(err, rpc.ErrNotRunning): // it ended meanwhile
		return endedStatus(d)
	case within.Err() == nil || ctx.Err() != nil:
		return s, err
	}
	return silentStatus(d)
}

// silentStatus is a job whose process does not answer, as its files tell. One that
// is suspended, by Ctrl-Z or with its machine, has not failed.
func silentStatus(d *rundir.Dir) (spec.Status, error) {
	s, err := endedStatus(d)
	if pid, running := d.Running(); running && err == nil {
		s.State, s.Reason = spec.Running, fmt.Sprintf("process %d does not answer: it may be suspended", pid)
	}
	return s, err
}

func (a *app) statusOfAll(ctx context.Context) error {
	dirs, err := rundir.List("")
	if err != nil {
		return err
	}
	list := []spec.Status{}
	for _, d := range dirs {
		s, err := statusOf(ctx, d)
		if err != nil {
			s = spec.Status{Job: d.Name, State: spec.Failed, Reason: err.Error()}
		}
		list = append(list, s)
	}
	return a.print(list, statusTable(list))
}

func statusTable(list []spec.Status) table {
	t := table{columns: []string{"NAME", "STATE", "PROGRESS", "SERVERS", "WORKERS", "STEP/S", "LOSS", "ETA", "RESCALES", "AGE", "+EXAMPLES/S", "+WORKLOAD", "+REASON"}}
	for _, s := range list {
		share, age, speed, loss, eta := "-", "-", "-", "-", "-"
		if s.Steps > 0 {
			share = fmt.Sprintf("%d/%d", s.Step, s.Steps)
		}
		known := readAsked(s.Job)
		if !known.began.IsZero() {
			age = humanAge(time.Since(known.began))
		}
		if s.Step > 0 && !s.State.Final() && s.ExamplesPerS > 0 { // NaN where the process does not answer
			eta = humanETA(s.ETAS)
			if known.Plan.Batch > 0 {
				speed = fmt.Sprintf("%.1f", float64(s.ExamplesPerS)/float64(known.Plan.Batch))
			}
		}
		if s.Step > 0 {
			loss = s.Loss.String()
		}
		t.rows = append(t.rows, []string{s.Job, string(s.State), share, fmt.Sprint(s.Servers), fmt.Sprint(s.Workers), speed, loss, eta,
			fmt.Sprint(len(s.Rescales)), age, s.ExamplesPerS.String(), s.Workload, s.Reason})
	}
	return t
}

func (a *app) printStatus(s spec.Status) error {
	if err := a.print(s, statusTable([]spec.Status{s})); err != nil || a.format != asWide || len(s.Members) == 0 {
		return err
	}
	t := table{columns: []string{"ROLE", "ID", "INCARNATION", "PID", "STATE", "STEP", "ADDRESS"}}
	for _, m := range s.Members {
		t.rows = append(t.rows, []string{m.Role, fmt.Sprint(m.ID), fmt.Sprint(m.Incarnation), fmt.Sprint(m.PID), m.State, fmt.Sprint(m.Step), m.Addr})
	}
	return t.write(a.stdout, true)
}

// watch prints a job's changes until it ends.
func (a *app) watch(ctx context.Context, d *rundir.Dir) error {
	s, err := statusOf(ctx, d)
	if err != nil {
		return err
	}
	if s.State.Final() {
		return a.printStatus(s)
	}
	client, err := connect(ctx, "status", d.Name)
	if err != nil {
		return err
	}
	defer client.Close()
	stream, err := client.Watch(ctx, &rpc.WatchRequest{})
	for err == nil {
		var r *rpc.StatusReply
		if r, err = stream.Recv(); err == nil {
			var s spec.Status
			if err = json.Unmarshal(r.StatusJson, &s); err == nil {
				if a.format == asJSON {
					_, err = fmt.Fprintf(a.stdout, "%s\n", r.StatusJson)
				} else {
					_, err = fmt.Fprintln(a.stdout, line(s))
				}
			}
		}
	}
	if err == io.EOF || ctx.Err() != nil { // interrupting is the way to end it
		return nil
	}
	return err
}
