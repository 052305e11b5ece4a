package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-dev/reprise/cmd/internal/config"
)

// prepare reads what the command line leaves to the environment, and refuses what makes no
// sense.
func (a *app) prepare(cmd *cobra.Command, args []string) error {
	if err := fromEnvironment(cmd.Flags()); err != nil {
		return err
	}
	if a.output != "text" && a.output != "json" {
		return usage("output form %q: write text or json", a.output)
	}
	a.running = true
	a.remote.read(cmd)
	if a.utc {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if w, ok := f.Value.(*when); ok {
				w.inUTC()
			}
		})
	}
	if err := refuseGiven(cmd.Flags()); err != nil {
		return err
	}
	return refuseUnnamed(cmd, args)
}

// variableOf is the variable that a flag is read from if it is not given; empty: none.
// REPRISE_AUTH is a login itself, not the file with one, and REPRISE_TURN is what a tool
// is told of the turn that it runs in.
func variableOf(flag string) string {
	if slices.Contains([]string{"auth", "turn", "help", "version"}, flag) {
		return ""
	}
	return "REPRISE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets flags that were not given from their variables. An empty one is none.
func fromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := variableOf(f.Name)
		if name == "" || f.Changed || err != nil {
			return
		}
		if value := os.Getenv(name); value != "" {
			if wrong := flags.Set(f.Name, value); wrong != nil {
				err = usage("%s: %v", name, flagError(nil, wrong))
			}
		}
	})
	return err
}

// environmentHelp ends the help of each command.
const environmentHelp = `{{if .HasAvailableFlags}}
A flag that is not given is read from its variable, such as REPRISE_LOG_FORMAT for --log-format
(all but --auth and --turn).
{{end}}`

// explained has cmd and the commands below it explain arguments that do not fit.
func (a *app) explained(cmd *cobra.Command) {
	fits := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if fits == nil || fits(cmd, args) == nil {
			return nil
		}
		return a.unfit(cmd, args)
	}
	for _, below := range cmd.Commands() {
		a.explained(below)
	}
}

// unfit is what is wrong with arguments that cmd does not take.
func (a *app) unfit(cmd *cobra.Command, args []string) error {
	if cmd.HasAvailableSubCommands() && len(args) > 0 {
		var names []string
		for _, below := range cmd.Commands() {
			names = append(names, below.Name())
		}
		return fmt.Errorf("there is no command %q%s", args[0], meant("", args[0], names))
	}
	if names := arguments(cmd.Use); len(args) < len(names) {
		missing := slices.DeleteFunc(names[len(args):], func(name string) bool { return strings.HasPrefix(name, "[") })
		return fmt.Errorf("%s missing: %s", isOrAre(missing), cmd.UseLine())
	}
	return fmt.Errorf("argument %q is one too many: %s", args[len(args)-1], cmd.UseLine())
}

// arguments are what stands behind a command's name in its use: the names of its arguments,
// without flags. Those in brackets may be left out.
func arguments(use string) (names []string) {
	use, _, _ = strings.Cut(use, " | ")
	for _, word := range strings.Fields(use)[1:] {
		switch {
		case strings.HasPrefix(word, "--"):
			return names
		case !strings.HasPrefix(word, "[--"):
			names = append(names, word)
		}
	}
	return names
}

func isOrAre(names []string) string {
	text := strings.ReplaceAll(strings.Join(names, " and "), "...", "")
	if len(names) == 1 {
		return text + " is"
	}
	return text + " are"
}

// meant asks whether the nearest of words was meant.
func meant(before, word string, words []string) string {
	if near := config.Nearest(word, words); near != "" {
		return fmt.Sprintf(": did you mean %s%s?", before, near)
	}
	return ""
}

// flagError says of a flag's value what could be written in its place, and of an unknown flag
// of cmd which one may be meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && cmd != nil {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		return fmt.Errorf("%w%s", err, meant("--", unknown.GetSpecifiedName(), names))
	}
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	write := map[string]string{
		"int": "write a whole number, such as 20", "uint64": "write a number, 1 or more", "float64": "write a number, such as 0.5",
		"bool": "write true or false", "duration": "write a duration, such as 30s, 10m or 2h",
	}[wrong.GetFlag().Value.Type()]
	if write == "" { // the flag is ours and says it itself
		write = wrong.Unwrap().Error()
	}
	return fmt.Errorf("--%s %q: %s", wrong.GetFlag().Name, wrong.GetValue(), write)
}
