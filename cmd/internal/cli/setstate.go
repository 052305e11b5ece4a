package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) setState() *cobra.Command {
	return a.changes(&cobra.Command{
		Use: "set-state AGENT JSON | set-state AGENT -", GroupID: groupChange, Args: cobra.ExactArgs(2),
		Short: "Change the state of an agent by a JSON merge patch",
		Long: `Change the state of an agent by a JSON merge patch (RFC 7396): fields are set, null removes one.
With - the patch is read from standard input.`,
		Example: `  reprise set-state assistant/main '{"lang":"de","draft":null}'`,
	}, func(f changeFlags, args []string) (messages.Command, done, error) {
		text, err := a.text(args[1:])
		if err != nil {
			return nil, nil, err
		}
		var patch map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &patch); err != nil || patch == nil {
			return nil, nil, usage("the patch must be a JSON object, such as '{\"lang\":\"de\"}'")
		}
		return messages.SetState{ID: f.id, Patch: json.RawMessage(text), Reason: f.reason}, plainly("changed the state"), nil
	})
}
