package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// importFlags are the flags of import.
type importFlags struct {
	agent, as, keyFile, reason string
	set                        []string
	dry                        bool
}

func (a *app) imports() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use: "import FILE", GroupID: groupKeep, Args: cobra.ExactArgs(1),
		Short: "Import agents that were exported elsewhere",
		Long: `Import agents that "reprise export" has written, with all of their history. They continue here.

The whole file is read before anything is stored. A file that is damaged, incomplete, or of a
newer version is refused. An agent gets the address in the file, or that of --as. The address
must be one that no agent has or had, and its kind must be defined here.

What the agent was doing when it was exported is not imported: waiting inputs, timers, answers to
callers and messages to other agents. An open turn is paused until it is resumed; calls that ran
in it are unknown. Tools are called as before; with --dry, not until "reprise use-tools".

If the original still works elsewhere, both act. At the same address, calls of both can have the
same idempotency key, and a receiver that drops repeated keys drops the second effect: choose
another address with --as, or use --dry.

An import that was interrupted can be run again: nothing is stored twice. What an abandoned
import has stored belongs to no agent; "reprise doctor --repair" removes it.

Payloads are written to the store directly. That needs an administrator's permission: $JS.API.>,
and publishing to the store's subjects. If the store is encrypted, it also needs the wrapping
key.`,
		Example: `  reprise import ticket-42.jsonl.gz
  reprise import ticket-42.jsonl.gz --as support/reported --dry
  reprise import support.jsonl.gz --agent support/ticket-7`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.runImport(ctx, args[0], f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.agent, "agent", "", "import only this `AGENT` of the file (default: all)")
	fs.StringVar(&f.as, "as", "", "`ADDRESS` of the imported agent, if it is only one (default: the address in the file)")
	fs.StringVar(&f.keyFile, "key-file", "", "`FILE` with the wrapping key, if the store is encrypted (default: $"+keyVariable+")")
	setFlag(cmd, &f.set)
	fs.BoolVar(&f.dry, "dry", false, "call no tools until \"reprise use-tools\"")
	fs.StringVar(&f.reason, "reason", "", "`TEXT` of the reason, for the log")
	return waitsFor(a.connects(cmd, 0), "all of it")
}

func (a *app) runImport(ctx context.Context, name string, f importFlags) error {
	if name == "" || name == "-" {
		return usage("import reads the file twice: name a file, not standard input")
	}
	set, err := forkChanges(f.set)
	if err != nil {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	chosen, err := f.read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	cl, ctx, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	store, closes, err := a.writableStore(ctx, f.keyFile)
	if err != nil {
		return err
	}
	defer closes()
	r := &importRun{app: a, importFlags: f, changes: set, client: cl, store: store, chosen: chosen}
	if err := r.check(ctx); err != nil {
		return err
	}
	return r.run(ctx, file)
}

// importedAgent is an agent of a file, and what it becomes.
type importedAgent struct {
	head   export.Head
	end    export.End
	as     messages.AgentID
	before *projections.Origin // what it was imported as before; nil: it was not
}

// read verifies the whole file, and returns the agents that the flags choose.
func (f importFlags) read(file io.ReadSeeker) (chosen []*importedAgent, err error) {
	only := messages.AgentID{}
	if f.agent != "" {
		if only, err = messages.ParseAgentID(f.agent); err != nil {
			return nil, err
		}
	}
	var head export.Head
	for line, err := range export.Lines(file) {
		switch {
		case err != nil:
			return nil, err
		case line.Head != nil:
			head = *line.Head
		case line.End != nil:
			as, err := messages.ParseAgentID(head.Agent)
			if err != nil {
				return nil, err
			}
			if f.agent == "" || as == only {
				chosen = append(chosen, &importedAgent{head: head, end: *line.End, as: as})
			}
		}
	}
	if len(chosen) == 0 {
		return nil, messages.Refuse(messages.NotFound, "agent %s is not in the file", only)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return chosen, f.rename(chosen)
}

// rename sets the chosen agent's address to that of --as.
func (f importFlags) rename(chosen []*importedAgent) (err error) {
	switch {
	case f.as == "":
		return nil
	case len(chosen) > 1:
		return usage("--as is the address of one agent, and the file has %d: choose one with --agent", len(chosen))
	}
	chosen[0].as, err = messages.ParseAgentID(f.as)
	return err
}

// importRun is an import of a file that is whole.
type importRun struct {
	*app
	importFlags
	changes messages.ForkChanges
	client  *client.Client
	store   eventlog.Store
	chosen  []*importedAgent
}

// check refuses agents that exist, before anything is stored.
func (r *importRun) check(ctx context.Context) error {
	for _, i := range r.chosen {
		first, err := eventlog.First(r.store.Read(ctx, i.as, eventlog.Range{}))
		if damage := new(eventlog.DamageError); err != nil && !errors.As(err, &damage) {
			return err
		}
		switch file, before := importedFrom(first); {
		case err == nil && first.Frame == nil:
		case before != nil && file == i.end.SHA256:
			i.before = before
		default:
			return messages.Refuse(messages.Conflict, "agent %s exists, or did: choose another address with --as", i.as)
		}
	}
	return nil
}

// importedFrom returns the digest of the lines that an agent with this first frame was imported from, and
// what it was imported as; nil: it was not imported.
func importedFrom(first eventlog.Recorded) (file messages.Digest, as *projections.Origin) {
	if first.Frame == nil || len(first.Frame.Events) == 0 {
		return "", nil
	}
	var forks projections.Forks
	projections.Fold(first.Frame, 0, &forks)
	return messages.ImportedFile(first.Frame.Events[0]), forks.Origin
}

func (r *importRun) run(ctx context.Context, file io.Reader) error {
	next := 0
	as := func(h export.Head) (messages.AgentID, bool) {
		if next == len(r.chosen) || h.Agent != r.chosen[next].head.Agent {
			return messages.AgentID{}, false
		}
		i := r.chosen[next]
		if next++; i.before != nil {
			r.say(importedLine{Agent: i.as, Source: i.head.Agent, Last: i.end.Last, Duplicate: true}, i)
		}
		return i.as, i.before == nil
	}
	for stored, err := range export.Store(ctx, file, r.store, as) {
		if err != nil {
			return err
		}
		if err := r.begin(ctx, stored); err != nil {
			return err
		}
	}
	return nil
}

// importedLine is what import says of an agent in JSON.
type importedLine struct {
	Agent  messages.AgentID `json:"agent"`
	Source string           `json:"source"`
	// Last is the newest event of the file, N the first of the agent's own.
	Last      messages.EventNumber `json:"last"`
	N         messages.EventNumber `json:"n,omitempty"`
	Duplicate bool                 `json:"duplicate,omitempty"`
}

// begin has the owner of the agent's partition begin the agent.
func (r *importRun) begin(ctx context.Context, s export.Stored) error {
	answer, err := r.client.Do(ctx, s.Agent.String(), messages.Import{
		ID: messages.Derived("import:", s.Agent.Full(), string(s.End.SHA256)), Source: s.Head.Agent,
		Frames: s.Prefix.Frames, Last: s.Prefix.Last, Digest: s.Prefix.Digest, File: s.End.SHA256,
		Redacted: s.Head.Redacted, Dry: r.dry, Set: r.changes, Reason: r.reason,
	})
	if err != nil {
		return err
	}
	i := &importedAgent{head: s.Head, end: s.End, as: s.Agent}
	r.say(importedLine{Agent: s.Agent, Source: s.Head.Agent, Last: s.End.Last, N: answer.N, Duplicate: answer.Duplicate}, i)
	return nil
}

// say prints what became of an agent.
func (r *importRun) say(l importedLine, i *importedAgent) {
	if r.json() {
		_ = r.object(l)
	} else {
		did := "imported"
		if l.Duplicate {
			did = "imported before"
		}
		r.printf("%s: %s, with the %d events up to %d of %s\n", l.Agent, did, i.end.Events, l.Last, l.Source)
	}
	if i.before != nil {
		r.sayBefore(l.Agent, importedWith(*i.before), importedWith(projections.Origin{Tools: !r.dry, Set: r.changes}))
	}
	if missing := len(i.end.Missing); missing > 0 {
		r.note("%d payloads and definitions that its events name are not in the file", missing)
	}
	if !i.head.Blobs {
		r.note("the file was exported with --no-blobs: large payloads are missing")
	}
}

// sayBefore prints how an agent was imported before, if that is not as it would be now.
func (r *importRun) sayBefore(agent messages.AgentID, was, now string) {
	if was != now {
		r.note("%s was already imported %s: use-tools ends --dry; to change anything else, import the file at another address, with --as", agent, was)
	}
}

// importedWith returns the flags that have changed what an agent was imported as.
func importedWith(o projections.Origin) string {
	dry, set := "with --dry", "without --set"
	if o.Tools {
		dry = "without --dry"
	}
	if changes := changesText(o.Set); changes != "" {
		set = "with " + changes
	}
	return dry + ", " + set
}
