package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"optimus/internal/rpc"
)

// savedNow is the JSON form of a checkpoint that was asked for.
type savedNow struct {
	Job  string `json:"job"`
	Step int64  `json:"step"`
	Dir  string `json:"dir"`
}

func checkpointNowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "now JOB",
		Short:   "Save a running job at its next step",
		Long:    `Save a running job at its next step, and wait until the checkpoint is on disk.`,
		Example: "  optimus checkpoint now reviews",
		RunE: func(c *cobra.Command, args []string) error {
			client, err := connect(c.Context(), "checkpoint now", args[0])
			if err != nil {
				return err
			}
			defer client.Close()
			reply, err := client.Checkpoint(c.Context(), &rpc.CheckpointRequest{})
			if err != nil {
				return err
			}
			s := savedNow{args[0], reply.Step, reply.Path}
			return a.print(s, table{columns: []string{"JOB", "STEP", "DIR"}, rows: [][]string{{s.Job, fmt.Sprint(s.Step), s.Dir}}, name: 2})
		},
	}
}
