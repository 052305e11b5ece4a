package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-dev/reprise/messages"
)

// positives are the flags whose zero would count as if they were not given.
var positives = []string{"at", "keep", "max-steps", "max-tokens", "max-cost", "max-duration"}

// worded are the flags whose empty text would count so: a variable of the shell that
// is not set must not take a binding, an id, a key or a filter away, nor choose another
// store.
var worded = []string{
	"args-hash", "auth", "config", "context", "creds", "data", "deadline", "http-host", "id", "index-dir", "input", "key-file", "model", "name", "nats", "outcome", "person", "phase", "reply", "root", "salvage", "timer", "tool", "turn",
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
		return usage("--timeout %s: it must be positive, or 0 to wait for ever", value)
	}
	return nil
}
