package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"optimus/internal/rpc"
	"optimus/spec"
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
			ctx, cancel := context.WithTimeout(c.Context(), timeout+10*time.Second)
			defer cancel()
			client, err := connect(ctx, "rescale", args[0])
			if err != nil {
				return err
			}
			defer client.Close()
			reply, err := client.Rescale(ctx, &rpc.RescaleRequest{Servers: int32(servers), Workers: int32(workers), TimeoutMs: timeout.Milliseconds()})
			if err != nil {
				return err
			}
			var r spec.RescaleReport
			if err := json.Unmarshal(reply.ReportJson, &r); err != nil {
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
