package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"optimus/internal/failure"
	"optimus/internal/suggest"
	"optimus/spec"
)

// usageError is an error about the command line of c: exit status 2. Without
// advice it points to the help.
func usageError(c *cobra.Command, cause error, do string) error {
	if _, said := errors.AsType[*failure.Error](cause); said {
		return cause
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
	return usageError(c, fmt.Errorf("unknown command %q", name), suggest.Meant(name, names))
}

// flagError says of a flag that does not exist which may have been meant, and of
// a value that is not one which are.
func flagError(c *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if allowed := allowedFor(wrong); allowed != "" {
			return usageError(c, fmt.Errorf("--%s is %q", wrong.GetFlag().Name, wrong.GetValue()), "allowed: "+allowed)
		}
	}
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok && len(missing.GetSpecifiedName()) > 1 {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		name := "--" + missing.GetSpecifiedName()
		if near, ok := suggest.Nearest(name, names); ok {
			return usageError(c, fmt.Errorf("unknown flag %s", name), fmt.Sprintf("did you mean %s?", near))
		}
	}
	return usageError(c, err, "")
}

// allowedFor says which values the flag takes; it is empty if that is not known.
func allowedFor(wrong *pflag.InvalidValueError) string {
	if field, ok := errors.AsType[*spec.FieldError](wrong); ok {
		return field.Allowed
	}
	switch wrong.GetFlag().Value.Type() {
	case "int":
		return "a whole number of up to 18 digits"
	case "uint64":
		return fmt.Sprintf("0 to %d", uint64(math.MaxUint64))
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 90s or 2h"
	case formatType:
		return formatList()
	}
	return ""
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
