package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"optimus/internal/failure"
	"optimus/internal/suggest"
)

// usageError is an error about the command line of c: exit status 2. Without
// advice it points to the help.
func usageError(c *cobra.Command, cause error, do string) error {
	if failure.KindOf(cause) == failure.InvalidArgument {
		return cause // said already
	}
	if do == "" {
		do = fmt.Sprintf("see `%s --help`", c.CommandPath())
	}
	return failure.E(verb(c), "", failure.InvalidArgument, cause, do)
}

// verb is the path of c without the program's name.
func verb(c *cobra.Command) string {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	return path
}

// group is what a command that only holds others does when it is called.
func group(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError(c, errors.New("missing command"), "")
	}
	return unknownCommand(c, args[0])
}

func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usageError(c, fmt.Errorf("unknown command %q", name), didYouMean(name, names))
}

// flagError adds the nearest flag to the error for one that does not exist.
func flagError(c *cobra.Command, err error) error {
	if missing := (*pflag.NotExistError)(nil); errors.As(err, &missing) && len(missing.GetSpecifiedName()) > 1 {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		name := "--" + missing.GetSpecifiedName()
		if near, ok := suggest.Nearest(name, names); ok {
			return usageError(c, fmt.Errorf("unknown flag %s", name), "did you mean "+near+"?")
		}
	}
	return usageError(c, err, "")
}

// arguments checks args against the words after the name in c.Use: WORD must be
// given, [WORD] may be.
func arguments(c *cobra.Command, args []string) error {
	most := 0
	for _, word := range strings.Fields(c.Use)[1:] {
		if optional := strings.HasPrefix(word, "["); !optional && len(args) <= most {
			return usageError(c, fmt.Errorf("missing %s", word), "")
		}
		most++
	}
	if len(args) > most {
		return usageError(c, fmt.Errorf("unexpected argument %q", args[most]), "")
	}
	return nil
}

// didYouMean says what may have been meant by name: the nearest of the names, or
// all of them if there are few.
func didYouMean(name string, names []string) string {
	if near, ok := suggest.Nearest(name, names); ok {
		return "did you mean " + near + "?"
	}
	if len(names) <= 16 && len(names) > 0 {
		return "one of " + strings.Join(names, ", ")
	}
	return ""
}
