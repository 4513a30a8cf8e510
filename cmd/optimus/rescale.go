package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/internal/rpc"
	"optimus/spec"
	"optimus/train"
)

func rescaleCommand(a *app) *cobra.Command {
	var servers, workers int
	var timeout time.Duration
	c := &cobra.Command{
		Use:     "rescale JOB",
		Short:   "Change a running job's servers and workers",
		Example: "  optimus rescale cnn-rand-1 --servers 3 --workers 5",
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range []string{"servers", "workers"} {
				n, _ := c.Flags().GetInt(name)
				if c.Flags().Changed(name) && (n < 1 || n > spec.MaxMembers) {
					return usageError(c, fmt.Errorf("--%s is %d; allowed: 1 to %d", name, n, spec.MaxMembers), "")
				}
			}
			if servers == 0 && workers == 0 {
				return usageError(c, errors.New("missing --servers or --workers"), "")
			}
			if timeout <= 0 {
				return usageError(c, fmt.Errorf("--timeout is %v; allowed: a positive duration such as 90s", timeout), "")
			}
			d, err := openJob("rescale", args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			r, err := train.Rescale(ctx, "", d.Name, servers, workers)
			if errors.Is(err, rpc.ErrNotRunning) {
				return notRunning("rescale", d)
			}
			if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) { // else the job has answered
				return failure.E("rescale", d.Name, failure.Deadline, fmt.Errorf("no answer within %v", timeout), "look at `optimus status "+d.Name+"`")
			}
			if err != nil {
				return err
			}
			return a.printRescale(r)
		},
	}
	c.Flags().IntVar(&servers, "servers", 0, "parameter servers (default: as they are)")
	c.Flags().IntVar(&workers, "workers", 0, "workers (default: as they are)")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait for it")
	return c
}

func (a *app) printRescale(r spec.RescaleReport) error {
	phases := ""
	for i, p := range r.Phases {
		if i > 0 {
			phases += ", "
		}
		phases += fmt.Sprintf("%s %.0f ms", p.Name, p.MS)
	}
	return a.print(r, table{columns: []string{"STEP", "FROM", "TO", "MOVED", "PARAMETERS", "PAUSE", "PHASES", "+DIGEST"},
		rows: [][]string{{fmt.Sprint(r.Step), fmt.Sprintf("(%d,%d)", r.From[0], r.From[1]), fmt.Sprintf("(%d,%d)", r.To[0], r.To[1]),
			humanBytes(r.BytesMoved), humanCount(int(r.ElementsMoved)), fmt.Sprintf("%.0f ms", r.PauseMS), phases, r.StateDigest}}})
}
