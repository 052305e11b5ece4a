package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/messages"
)

// prepare reads what the command line leaves to the environment, and refuses what makes no
// sense.
func (a *app) prepare(cmd *cobra.Command, args []string) error {
	if err := a.fromEnvironment(cmd, args); err != nil {
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

// unread are the flags that are not read from variables: REPRISE_AUTH is a login itself, not the
// file with one, tools are given REPRISE_AGENT and REPRISE_TURN, and the others mean something of
// their own, or too much, in each command.
var unread = []string{"agent", "all", "auth", "help", "id", "turn", "version", "yes"}

// readsVariable reports whether a flag of a command is read from its variable. REPRISE_NAME names a
// node, and no timers.
func readsVariable(cmd *cobra.Command, flag string) bool {
	return !slices.Contains(unread, flag) && (flag != "name" || cmd.Flags().Lookup("cron") == nil)
}

// apart are flags that exclude one another: each of the first with each of the second.
var apart = [][2][]string{
	{{"nats", "context", "system-creds", "system-context"}, {"data", "listen", "sync", "auth", "insecure"}},
	{{"nats"}, {"context"}},
	{{"tail"}, {"from", "turn"}},
	{{"input"}, {"timer", "all"}},
	{{"timer"}, {"all"}},
	{{"in"}, {"at", "cron"}},
	{{"cron"}, {"at", "deadline"}},
	{{"quick"}, {"deep", "repair", "rate"}},
	{{"models", "salvage", "quarantine", "accept-loss"}, {"quick", "deep", "repair", "rate"}},
	{{"model"}, {"config"}},
	{{"from-file"}, {"kind", "tenant"}},
	{{"watch"}, {"output"}},
}

// exclude reports whether one of two flags is not given with the other.
func exclude(one, other string) bool {
	return slices.ContainsFunc(apart, func(p [2][]string) bool {
		return slices.Contains(p[0], one) && slices.Contains(p[1], other) || slices.Contains(p[0], other) && slices.Contains(p[1], one)
	})
}

// variableOf is the variable that a flag is read from if it is not given.
func variableOf(flag string) string {
	return "REPRISE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets flags from their variables, where neither they nor others that exclude
// them are given. An empty variable is none.
func (a *app) fromEnvironment(cmd *cobra.Command, args []string) (err error) {
	var given []string
	cmd.Flags().Visit(func(f *pflag.Flag) { given = append(given, f.Name) })
	if len(args) > 0 && strings.Contains(cmd.Use, "[AGENT") { // its address says which
		given = append(given, "tenant", "kind")
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := variableOf(f.Name)
		value, excludes := os.Getenv(name), func(other string) bool { return exclude(f.Name, other) }
		if err != nil || value == "" || f.Hidden || !readsVariable(cmd, f.Name) || slices.Contains(given, f.Name) || slices.ContainsFunc(given, excludes) {
			return
		}
		if i := slices.IndexFunc(a.variables, excludes); i >= 0 {
			err = usage("%s and %s exclude one another: set one of them", variableOf(a.variables[i]), name)
		} else if wrong := cmd.Flags().Set(f.Name, value); wrong != nil {
			err = usage("%s: %v", name, flagError(nil, wrong))
		}
		a.variables = append(a.variables, f.Name)
	})
	return err
}

// cause adds to a failure the variables that it may come from: each that sets a flag that it
// names, or, where the command line makes no sense, a value that it names.
func (a *app) cause(f *failure) {
	var names []string
	for _, flag := range a.variables {
		name := variableOf(flag)
		value := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(strings.ToValidUTF8(os.Getenv(name), string(utf8.RuneError))) + `(\W|$)`)
		named := regexp.MustCompile("--" + flag + "([^a-z-]|$)").MatchString(f.what + "\n" + f.do)
		if !strings.Contains(f.what, name) && (named || f.code == exitUsage && value.MatchString(f.what)) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 0 || f.what == "":
	case f.do == "":
		f.do = "read from variables: " + strings.Join(names, ", ")
	default:
		f.do += " (read from variables: " + strings.Join(names, ", ") + ")"
	}
}

// environmentHelp ends the help of each command.
const environmentHelp = `{{if .HasAvailableFlags}}
A flag that is not given is read from its environment variable, such as REPRISE_LOG_FORMAT for
--log-format, unless a flag that excludes it is given. --agent, --all, --auth, --id, --turn, --yes
and --name of a timer have no variable.
{{end}}`

// allFlags is what cobra's help lists of a command's flags, and ownFlags what it lists here: those that
// choose the NATS server come last.
const (
	allFlags = `{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}`
	ownFlags = `{{if .HasParent}}{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{if .HasAvailablePersistentFlags}}

Connection Flags:
{{.PersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{else}}` + allFlags + `{{end}}`
)

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
		return fmt.Errorf("there is no command %q%s", args[0], meant("", args[0], each(cmd.Commands(), (*cobra.Command).Name)))
	}
	if names := arguments(cmd.Use); len(args) < len(names) {
		missing := slices.DeleteFunc(names[len(args):], func(name string) bool { return strings.HasPrefix(name, "[") })
		return fmt.Errorf("%s missing: %s", isOrAre(missing), cmd.UseLine())
	}
	return fmt.Errorf("argument %q is one too many: %s", args[len(args)-1], cmd.UseLine())
}

// arguments are what follows a command's name in its use: the names of its arguments,
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
		"int": "write a whole number, such as 20", "intSlice": "write whole numbers, such as 1,64", "uint64": "write a number, 1 or more", "float64": "write a number, such as 0.5",
		"bool": "write true or false", "duration": "write a duration, such as 30s, 10m or 2h",
	}[wrong.GetFlag().Value.Type()]
	if write == "" { // the flag is ours and says it itself
		write = wrong.Unwrap().Error()
	}
	return fmt.Errorf("--%s %q: %s", wrong.GetFlag().Name, wrong.GetValue(), write)
}

// positives are the flags whose zero would count as if they were not given.
var positives = []string{"at", "keep", "max-steps", "max-tokens", "max-cost", "max-duration"}

// worded are the flags whose empty text would count so: a variable of the shell that
// is not set must not take a binding, an id, a key or a filter away, nor choose another
// store.
var worded = []string{
	"agent", "args-hash", "as", "auth", "candidate", "config", "context", "creds", "data", "deadline", "from-file", "http-host", "id", "index-dir", "input", "key-file", "model", "name", "nats", "outcome", "person", "phase", "reply", "root", "salvage", "timer", "tool", "turn",
}

// listed is what shows the things that a word of a command's use names.
var listed = map[string]string{"CALL": "show", "NODE": "nodes", "SHA256": "events", "TOOL": "approvals", "TURN": "turns"}

// refuseUnnamed refuses a name that is empty, before anything is sent: a variable of the
// shell that is not set.
func refuseUnnamed(cmd *cobra.Command, args []string) error {
	for i, word := range strings.Fields(cmd.Use)[1:] {
		if by := listed[word]; by != "" && i < len(args) && args[i] == "" {
			return usage("%s is empty: name one, as `%s` shows them", word, by)
		}
	}
	return nil
}

// refuseGiven refuses a flag that was given and says nothing, or what no command
// could mean by it.
func refuseGiven(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if wrong := refused(f.Name, f.Value); wrong != nil {
			err = wrong
		}
	})
	return err
}

// refused returns what is wrong with a flag that was given; nil: nothing.
func refused(name string, given pflag.Value) error {
	switch value := given.String(); {
	case (given.Type() == "string" && value == "" || given.Type() == "stringSlice" && value == "[]") && slices.Contains(worded, name):
		return usage("--%s is empty: give it a value, or leave it out", name)
	case name == "person" && messages.ClaimedBy(value) == nil:
		return usage("--person %q: nothing of it can be printed; write a name", value)
	case name == "root":
		if err := messages.ValidateRoot(value); err != nil {
			return usage("--root: %v", err)
		}
	case given.Type() != "string" && (value == "0" || value == "0s") && slices.Contains(positives, strings.TrimPrefix(name, "agent-")):
		return usage("--%s %s: it must be positive, or left out", name, value)
	case name == "tail" && (value == "0" || strings.HasPrefix(value, "-")):
		return usage("--tail %s: it must be positive", value)
	case name == "timeout" && strings.HasPrefix(value, "-"):
		return usage("--timeout %s: it must be positive, or 0 to wait forever", value)
	}
	return nil
}
