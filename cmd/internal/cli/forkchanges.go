package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

// setUsage describes --set.
const setUsage = "`NAME=VALUE`, may be repeated: model=PROVIDER/MODEL, instructions=TEXT or @FILE, tools=NAME,NAME"

// setFlag adds to cmd the flag --set, which may be given several times.
func setFlag(cmd *cobra.Command, set *[]string) {
	cmd.Flags().StringArrayVar(set, "set", nil, setUsage)
}

// forkChanges reads the values of --set, which name each setting once.
func forkChanges(set []string) (c messages.ForkChanges, err error) {
	given := make(map[string]string)
	for _, s := range set {
		name, value, _ := strings.Cut(s, "=")
		if value == "" {
			return c, usage("--set %q: write NAME=VALUE, such as model=openai/gpt-5.5", s)
		}
		if earlier, twice := given[name]; twice {
			return c, usage("--set %q and --set %q both set %s: give one of them", earlier, s, name)
		}
		given[name] = s
		if err := setChange(&c, name, value); err != nil {
			return c, err
		}
	}
	return c, nil
}

// setChange sets what one value of --set names.
func setChange(c *messages.ForkChanges, name, value string) error {
	switch name {
	case "model":
		c.Model = value
	case "tools":
		c.Tools = strings.Split(value, ",")
		if slices.Contains(c.Tools, "") {
			return usage("--set %q: one of the tools has no name; write tools=NAME,NAME", "tools="+value)
		}
	case "instructions":
		if file, ok := strings.CutPrefix(value, "@"); ok {
			text, err := os.ReadFile(file)
			if err != nil {
				return usage("--set instructions: %v", err)
			}
			value = string(text)
		}
		c.Instructions = &value
	default:
		return usage("--set %q: what can be set is model, instructions and tools", name+"="+value)
	}
	return nil
}

// changesText returns what a fork has in place of its kind's definition.
func changesText(c messages.ForkChanges) string {
	var parts []string
	if c.Model != "" {
		parts = append(parts, "model "+c.Model)
	}
	if c.Instructions != nil {
		parts = append(parts, fmt.Sprintf("instructions %q", *c.Instructions))
	}
	if len(c.Tools) > 0 {
		parts = append(parts, "tools "+strings.Join(c.Tools, ", "))
	}
	return strings.Join(parts, ", ")
}
