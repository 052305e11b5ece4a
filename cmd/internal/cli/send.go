package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) send() *cobra.Command {
	var f inputFlags
	cmd := &cobra.Command{
		Use: "send AGENT TEXT... | send AGENT -", GroupID: groupTalk, Args: cobra.MinimumNArgs(2),
		Short: "Store an input for an agent and return",
		Long: `Store an input for an agent and return: once this prints its id it is not lost.
It may still be refused, which --reply and dlq ls tell.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runSend(cmd.Context(), f, args[0], args[1:])
		},
	}
	f.inputs(cmd)
	cmd.Flags().StringVar(&f.reply, "reply", "", "NATS subject to which acceptance and outcome are published")
	return a.connects(cmd, defaultTimeout)
}

func (a *app) runSend(ctx context.Context, f inputFlags, agent string, words []string) error {
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
