package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// positives are the flags whose zero would count as if they were not given.
var positives = []string{"at", "keep", "max-steps", "max-tokens", "max-cost", "max-duration"}

// refuseZero refuses a flag that was given as zero and must be positive.
func refuseZero(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		zero := f.Value.Type() != "string" && (f.Value.String() == "0" || f.Value.String() == "0s")
		if zero && slices.Contains(positives, strings.TrimPrefix(f.Name, "agent-")) {
			err = usage("--%s %s: it must be positive, or left out", f.Name, f.Value)
		}
	})
	return err
}
