package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/projections/index"
)

func (a *app) find() *cobra.Command {
	var tenant string
	q := messages.Query{View: "find"}
	cmd := &cobra.Command{
		Use: "find TEXT|KEY...", GroupID: groupLook, Args: cobra.MinimumNArgs(1),
		Short: "Find agents by a text, or by the id of a call or an input",
		Long: fmt.Sprintf(`Find the events of a tenant's agents that contain a text, newest first: inputs, answers of
models, the tool and arguments of a call, and its result.

TEXT is words that must all be in one event, in any order and in upper or lower case. Words in
double quotes must follow one another, as must the parts of a word with punctuation in it.
The first %d KiB of each event are searched; payloads that are kept as blobs are not.

KEY is the id of a call or of an input, or the idempotency key of a call, or at least its first
%d characters. Upper and lower case matter.

Events of an imported agent from before its import are found, too. Events from before a fork
began are found once, as those of its parent: the fork shares them. If the fork has copied them
(delete --detach), they are found as its own, marked with "before the fork"; while the parent
exists, both are found. Encrypted agents are found by ids and keys
only: their words are not searched.`, projections.MaxSaid>>10, index.MinPrefix),
		Example: `  reprise find refund order 7
  reprise find '"order 7" refund' --kind support --since 7d
  reprise find call_9f3a2c
  reprise find default/support/ticket-42/t4/call_9f3a2c -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := ofAll(cmd, nil, nil, nil); err != nil {
				return err
			}
			q.Text = strings.Join(args, " ")
			if _, err := index.ReadSearch(q.Text); err != nil {
				return usage("TEXT: %v", err)
			}
			return a.runFind(cmd.Context(), tenant, q)
		},
	}
	tenantFlag(cmd, &tenant)
	kindFlag(cmd, &q)
	timeFlags(cmd, &q, "only what was recorded")
	limitFlag(cmd, &q)
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runFind(ctx context.Context, tenant string, q messages.Query) error {
	rows, err := table(a, "AGENT\tEVENT\tAT\tTURN\tFOUND\tSNIPPET", a.ofTenant(ctx, tenant, q), func(f projections.Found) string {
		what := string(f.What)
		if f.ID != "" {
			what += " " + projections.Printable(f.ID, 200)
		}
		if f.BeforeFork {
			what += ", before the fork"
		}
		return fmt.Sprintf("%s\t%d\t%s\t%s\t%s\t%s", f.Agent, f.N, a.age(f.At), projections.Printable(string(f.Turn), 64), what, projections.Printable(f.Snippet, 0))
	})
	return a.listed(rows, err, fmt.Sprintf("nothing was found: all words must be in one event, and of an id at least the first %d characters are needed", index.MinPrefix), "")
}
