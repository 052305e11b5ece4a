package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) send() *cobra.Command {
	var f inputFlags
	var later laterFlags
	cmd := &cobra.Command{
		Use: "send AGENT TEXT... | send AGENT -", GroupID: groupTalk, Args: cobra.MinimumNArgs(2),
		Short: "Store an input for an agent and return",
		Long: `Store an input for an agent and return. Once the command prints the id, the input is stored.
It may still be refused: --reply and "reprise dlq ls" report that.

With --in, --at or --cron the input is delivered later, whether this command or a node runs in
the meantime or not. "reprise timers" lists such inputs, "reprise cancel" removes them.`,
		Example: `  reprise send assistant/main "What is 17 times 3?" --id question-1
  reprise send assistant/main "Has the parcel come?" --in 2h
  reprise send assistant/main "Good morning" --cron "0 9 * * 1-5" --tz Europe/Berlin --name morning`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runSend(cmd.Context(), f, later, args[0], args[1:])
		},
	}
	f.inputs(cmd)
	later.flags(cmd)
	cmd.Flags().StringVar(&f.reply, "reply", "", "NATS `SUBJECT` to which acceptance and outcome are published")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runSend(ctx context.Context, f inputFlags, later laterFlags, agent string, words []string) error {
	id, err := messages.ParseAgentID(agent)
	if err != nil {
		return usage("%v", err)
	}
	text, err := a.text(words)
	if err != nil {
		return err
	}
	in, err := f.input(text)
	if err != nil {
		return err
	}
	if err := (messages.Subjects{Root: a.remote.options.Root}).AllowNamedReply(id.Tenant, in.Reply); err != nil {
		return usage("--reply: %s", messages.AsError(err).Message)
	}
	if in.Schedule, err = later.schedule(time.Now(), in.Deadline); err != nil {
		return err
	}
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	if in.ID, err = c.Send(ctx, id.String(), in); err != nil {
		return err
	}
	if a.json() {
		subjects := messages.Subjects{Root: a.remote.options.Root}
		return a.object(struct {
			ID      string `json:"id"`
			Subject string `json:"subject"`
		}{in.ID, subjects.In(id)})
	}
	a.printf("%s\n", in.ID)
	return nil
}
