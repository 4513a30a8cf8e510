package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/internal/rpc"
	"optimus/spec"
)

func stopCommand(a *app) *cobra.Command {
	var without bool
	c := &cobra.Command{
		Use:     "stop JOB",
		Short:   "End a running job, after a checkpoint",
		Long:    `End a running job, after a checkpoint, and wait until it has ended.`,
		Example: "  optimus stop reviews\n  optimus train --resume reviews",
		RunE: func(c *cobra.Command, args []string) error {
			return a.stop(c, args[0], !without)
		},
	}
	c.Flags().BoolVar(&without, "no-checkpoint", false, "end at once: what was learned since the last checkpoint is lost")
	return c
}

func (a *app) stop(c *cobra.Command, name string, save bool) error {
	client, err := connect(c.Context(), "stop", name)
	if err != nil {
		return err
	}
	defer client.Close()
	watch, err := client.Watch(c.Context(), &rpc.WatchRequest{})
	if err != nil {
		return err
	}
	if _, err := client.Stop(c.Context(), &rpc.StopRequest{Checkpoint: save}); err != nil {
		return err
	}
	var s spec.Status
	for {
		reply, err := watch.Recv()
		if errors.Is(err, io.EOF) || errors.Is(err, rpc.ErrNotRunning) {
			break
		}
		if err == nil {
			err = json.Unmarshal(reply.StatusJson, &s)
		}
		if err != nil {
			return failure.E("stop", name, "", err, "see `optimus status "+name+"`")
		}
	}
	return a.printStatus(s)
}
