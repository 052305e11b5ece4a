package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// positives are the flags whose zero would count as if they were not given.
var positives = []string{"at", "keep", "max-steps", "max-tokens", "max-cost", "max-duration"}

// worded are the flags whose empty text would count so: a variable of the shell that
// is not set must not take a binding, an id, a key or a filter away, nor choose another
// store.
var worded = []string{
	"args-hash", "config", "context", "creds", "data", "deadline", "id", "key-file", "model", "nats", "outcome", "phase", "reply", "root", "tool", "turn", "views",
}

// refuseNothing refuses a flag that was given and says nothing.
func refuseNothing(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case f.Value.Type() == "string":
			if value == "" && slices.Contains(worded, f.Name) {
				err = usage("--%s is empty: give it a value, or leave it out", f.Name)
			}
		case (value == "0" || value == "0s") && slices.Contains(positives, strings.TrimPrefix(f.Name, "agent-")):
			err = usage("--%s %s: it must be positive, or left out", f.Name, value)
		}
	})
	return err
}
