package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"optimus/benchmarks/paper/reproduce"
	"optimus/internal/failure"
	"optimus/internal/suggest"
)

func reproduceCommand(a *app) *cobra.Command {
	o := reproduce.Options{}
	var data string
	c := &cobra.Command{
		Use:   "reproduce PAPER",
		Short: "Regenerate the tables and figures of a paper",
		Long: fmt.Sprintf(`Regenerate the tables and figures of a paper, one of %s: what the
paper has, what we have, the difference. It says which figures cannot be regenerated
and why.`, strings.Join(reproduce.Papers(), ", ")),
		Example: "  optimus reproduce optimus --out figures",
		RunE: func(c *cobra.Command, args []string) error {
			if o.Paper = args[0]; !slices.Contains(reproduce.Papers(), o.Paper) {
				return usageError(c, fmt.Errorf("unknown paper %q", o.Paper), suggest.Meant(o.Paper, reproduce.Papers()))
			}
			switch {
			case o.Seeds < 2 || o.Seeds > 10000:
				return usageError(c, fmt.Errorf("--seeds is %d", o.Seeds), "allowed: 2 to 10000")
			case a.format != "" && a.format != asTable:
				return usageError(c, fmt.Errorf("--output is %q", a.format.String()), "allowed: table; --out writes files for programs")
			}
			return a.reproduce(c, o, data)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Out, "out", "", "folder to write tables as CSV and plots to (default: none are written)")
	f.StringVar(&data, "data", "", "folder of the measurements: speed, traces, pollux (default: shared/data beside the checkout)")
	f.IntVar(&o.Seeds, "seeds", 20, "workloads drawn for each simulated figure")
	return c
}

func (a *app) reproduce(c *cobra.Command, o reproduce.Options, data string) error {
	if root, ok := checkout(); ok && data == "" {
		data = filepath.Join(root, "..", "shared", "data")
	}
	if data == "" {
		return usageError(c, errors.New("missing --data DIR"), "give the folder that holds speed, traces and pollux")
	}
	if _, err := os.Stat(data); err != nil {
		return failure.E("reproduce", data, "", withoutPath(err), "give the folder that holds speed, traces and pollux with --data")
	}
	o.Data = os.DirFS(data)
	err := reproduce.Run(c.Context(), o, a.stdout)
	switch {
	case c.Context().Err() != nil:
		return failure.E("reproduce", o.Paper, "", context.Cause(c.Context()), "")
	case err != nil:
		return failure.E("reproduce", "", "", &verbError{"reproduce ", err}, "")
	}
	return nil
}
