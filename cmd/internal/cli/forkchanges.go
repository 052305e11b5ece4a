package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

// setUsage describes --set.
const setUsage = "`NAME=VALUE`, may be given again: model=PROVIDER/MODEL, instructions=TEXT or @FILE, tools=NAME,NAME"

// setFlag gives cmd the flag --set, which may be given several times.
func setFlag(cmd *cobra.Command, set *[]string) {
	cmd.Flags().StringArrayVar(set, "set", nil, setUsage)
}

// forkChanges reads the values of --set.
func forkChanges(set []string) (c messages.ForkChanges, err error) {
	for _, s := range set {
		name, value, _ := strings.Cut(s, "=")
		if value == "" {
			return c, usage("--set %q: write NAME=VALUE, such as model=openai/gpt-5.5", s)
		}
		switch name {
		case "model":
			c.Model = value
		case "tools":
			c.Tools = strings.Split(value, ",")
		case "instructions":
			if file, ok := strings.CutPrefix(value, "@"); ok {
				text, err := os.ReadFile(file)
				if err != nil {
					return c, usage("--set instructions: %v", err)
				}
				value = string(text)
			}
			c.Instructions = &value
		default:
			return c, usage("--set %q: a fork can have another model, instructions or tools", s)
		}
	}
	return c, nil
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
