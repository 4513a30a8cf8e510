package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

// app is what every verb shares: the streams and the global flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	format         format
	started        bool // a verb's own work has begun: errors are no longer about usage
}

// newRoot builds the command tree. A verb is one function that returns its
// command; the Use line says which arguments it takes (see arguments).
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "optimus",
		Short: "Train with parameter servers and workers that rescale while a job runs",
		Long: `Optimus trains models data-parallel, with parameter servers and workers whose
numbers change while a job runs.`,
		Version:           fmt.Sprintf("%s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetVersionTemplate("optimus {{.Version}}\n")
	root.PersistentFlags().VarP(&a.format, "output", "o", "output: "+formatList())

	root.AddCommand(
		trainCommand(a),
		rescaleCommand(a),
		statusCommand(a),
		stopCommand(a),
		modelsCommand(a),
		planCommand(a),
		checkpointCommand(a),
		dataCommand(a),
		doctorCommand(a),
		fitCommand(a),
		simulateCommand(a),
		planClusterCommand(a),
		reproduceCommand(a),
		benchCommand(a),
		memberCommand(a),
	)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	prepare(a, root)
	return root
}

// prepare gives every command of the tree the program's conventions: groups
// refuse unknown and missing commands, verbs check their arguments against
// their Use line, wrong flags get a suggestion.
func prepare(a *app, c *cobra.Command) {
	c.SetFlagErrorFunc(flagError)
	switch {
	case !c.Runnable():
		c.Args = cobra.ArbitraryArgs
		c.RunE = group
	case c.Args == nil:
		c.Args = arguments
	}
	if work := c.RunE; work != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			a.started = !c.HasSubCommands()
			return work(c, args)
		}
	}
	for _, sub := range c.Commands() {
		prepare(a, sub)
	}
}

// helpCommand replaces cobra's, which succeeds on topics that do not exist.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		Args:  cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil {
				return usageError(root, err, "")
			}
			if len(rest) > 0 {
				return unknownCommand(c, rest[0])
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}
