package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"optimus/elastic"
	"optimus/train"
)

// memberCommand is what the supervisor of a job with --launch process starts.
func memberCommand(a *app) *cobra.Command {
	var layout, socket, role string
	var self elastic.Member
	c := &cobra.Command{
		Use:    "member",
		Short:  "Run one task of a job (started by train)",
		Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			signal.Ignore(os.Interrupt, syscall.SIGHUP) // the terminal's are for the supervisor
			self.Role = elastic.Role(role)
			return train.RunMember(c.Context(), layout, socket, self, logger(a.stderr))
		},
	}
	c.Flags().StringVar(&layout, "layout", "", "file that describes the job")
	c.Flags().StringVar(&socket, "socket", "", "control socket of the supervisor")
	c.Flags().StringVar(&role, "role", "", "server or worker")
	c.Flags().IntVar(&self.ID, "id", 0, "id of the member")
	c.Flags().Uint64Var(&self.Incarnation, "incarnation", 0, "which start of it this is")
	return c
}
