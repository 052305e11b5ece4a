package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) dlq() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dlq", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List and resend dead letters: inputs that could not be applied",
		Long: `List and resend dead letters: inputs that could never be applied, such as those to an address
that is not valid or to a kind that no node defines. Each is kept for 30 days with the reason.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var tenant string
	ls := &cobra.Command{
		Use: "ls", Args: cobra.NoArgs, Short: "List the dead letters of a tenant",
		Long:    "List the dead letters of a tenant. Those whose address cannot be read belong to the tenant " + messages.DefaultTenant + ".",
		Example: `  reprise dlq ls --tenant acme`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runLetters(cmd.Context(), tenant) },
	}
	show := &cobra.Command{
		Use: "show SEQ", Args: cobra.ExactArgs(1), Short: "Show one dead letter with its body",
		Example: `  reprise dlq show 17`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.findLetter(cmd.Context(), tenant, args[0], func(_ context.Context, _ *client.Client, l messages.DeadLetter) error {
				if a.json() {
					return a.object(l)
				}
				a.letter(l)
				return nil
			})
		},
	}
	retry := &cobra.Command{
		Use: "retry SEQ", Args: cobra.ExactArgs(1), Short: "Send a dead letter to its agent again",
		Long: `Send a dead letter to its agent again, under the id that it had: if you do so twice, it has one
effect. The dead letter itself is kept until its 30 days are over.`,
		Example: `  reprise dlq retry 17`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.findLetter(cmd.Context(), tenant, args[0], func(ctx context.Context, cl *client.Client, l messages.DeadLetter) error {
				err := cl.Resend(ctx, l)
				if err == nil {
					a.printf("sent again to %s\n", projections.Printable(l.Subject, 400))
				}
				return err
			})
		},
	}
	for _, c := range []*cobra.Command{ls, show, retry} {
		tenantFlag(c, &tenant)
		cmd.AddCommand(a.connects(c, defaultTimeout))
	}
	return cmd
}

func (a *app) runLetters(ctx context.Context, tenant string) error {
	letters := a.ofTenant(ctx, tenant, messages.Query{View: "dlq"})
	rows, err := table(a, "SEQ\tRECEIVED\tCODE\tSUBJECT\tREASON", letters, func(l messages.DeadLetter) string {
		return fmt.Sprintf("%d\t%s\t%s\t%s\t%s", l.Seq, a.age(l.Received),
			projections.Printable(l.Code, 40), projections.Printable(l.Subject, 80), projections.Printable(l.Reason, 160))
	})
	return a.listed(rows, err, "no dead letters", "")
}

// findLetter passes the dead letter of a number to do.
func (a *app) findLetter(ctx context.Context, tenant, arg string, do func(context.Context, *client.Client, messages.DeadLetter) error) error {
	seq, err := strconv.ParseUint(arg, 10, 64)
	if err != nil || seq == 0 {
		return usage("dead letter %q: write its number, as dlq ls shows it", arg)
	}
	if err := messages.ValidateToken("tenant", tenant); err != nil {
		return usage("%v", err)
	}
	cl, ctx, closes, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer closes()
	for l, err := range cl.DeadLetters(ctx, tenant, client.Only(messages.Query{From: messages.EventNumber(seq), Limit: 1})) {
		if err != nil {
			return err
		}
		if l.Seq == seq {
			return do(ctx, cl, l)
		}
	}
	return fail("`"+a.started+" dlq ls` lists them", "tenant %s has no dead letter %d", tenant, seq)
}

// letter prints a dead letter for a person.
func (a *app) letter(l messages.DeadLetter) {
	var rows [][2]string
	row := func(name, value string) {
		rows = append(rows, [2]string{projections.Printable(name, 80), projections.Printable(value, 1000)})
	}
	row("subject", l.Subject)
	row("received", l.Received.UTC().Format(time.RFC3339Nano))
	row("code", l.Code)
	row("reason", l.Reason)
	var names []string
	for name := range l.Headers {
		if !strings.HasPrefix(name, "Reprise-Reason") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		row("header "+name, strings.Join(l.Headers[name], ", "))
	}
	row("size", fmt.Sprintf("%d bytes", l.Size))
	a.fields(rows)
	if l.Base64 != nil {
		a.printf("\n%q\n", l.Base64)
		return
	}
	a.printf("\n%s\n", safe(l.Body))
}
