package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

type doctorFlags struct {
	tenant string
	// models asks the models of config and nothing else.
	models bool
	config string
	// quick leaves the store unread.
	quick bool
	// quarantine takes what cannot be read out of the files of a folder.
	quarantine bool
	// accept is a stream of the log whose loss a person accepts, and reason why.
	accept, reason string
	// salvage is the file to copy to what can be read of a folder.
	salvage string
	query   messages.Query
}

// asksNode reports whether something is asked for that a node does.
func (f doctorFlags) asksNode(agent string) bool {
	return agent != "" || f.quick || f.query.Deep || f.query.Repair || f.query.Rate != 0
}

func (a *app) doctor() *cobra.Command {
	f := doctorFlags{query: messages.Query{View: "doctor"}}
	cmd := &cobra.Command{
		Use: "doctor [AGENT]", GroupID: groupCheck, Args: cobra.MaximumNArgs(1),
		Short: "Check nodes, the store and models, and report problems",
		Long: `Check that a node can be reached and that the store is sound, and report what needs attention.
Each problem is named with its place and what to do.

A node reads the logs of all agents of all tenants, or that of one agent: numbering, chain,
checksums, headers against frames, and whether the payloads that events name exist. With --deep
it also reads payloads, finds those of agents that have no log, and compares headers, snapshots
and the node's index with a replay. The node continues to work; --rate limits how fast it reads.
Nothing is changed without --repair, and then only caches and payloads that nothing names.

With --data and without a server, doctor reads the files of a folder on which no node runs,
before a server opens it and drops what it cannot read. Each bad place is named with file, byte,
sequence and agent. Nothing is changed, unless with --quarantine: that removes what cannot be
read, and keeps the files as they were in the folder quarantine. A node can then be started on
the folder; agents that lost a frame answer that they are damaged.

With --salvage OUT as well, every message that can be read is copied to the file OUT, a backup:
"reprise restore" makes a store from it. What was deleted is not copied; what could not be copied
is named with its place and agent, and the exit code is 1 then. Snapshots and the keys of
encrypted agents are not in a backup. A restored agent that lacks events before its newest one
answers that it is damaged. One that lacks its newest events is named here, because its log does
not show it. The disk of OUT needs room for two copies of the folder; one is removed at the end.

Nodes also read the whole log in the background, once a day. The report begins with how far they
are and with each message that could not be read, including those that an agent does not need
because of its snapshot.

A stream of the log that has lost acknowledged messages is named, with how far it was known to
reach and how far it reaches now. Its agents answer that they are damaged until you restore a
backup, or accept the loss with --accept-loss. The check of the whole store is requested on the
subject <root>.q, which an administrator may use.

With --models no node is asked. Instead each model that the agents of a reprise.yaml use is called
twice: for a word, and for a tool call. The report names whether the model answers, streams, calls
tools and keeps to a schema, or what its server refused. This costs some hundred tokens a model at
most.`,
		Example: `  reprise doctor
  reprise doctor --deep
  reprise doctor --data ./data
  reprise doctor --models --config reprise.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && cmd.Flags().Changed("tenant") {
				return usage("--tenant: the address of the agent names its tenant, as in %s/%s", f.tenant, args[0])
			}
			return a.runDoctor(cmd.Context(), f, strings.Join(args, ""))
		},
	}
	tenantFlag(cmd, &f.tenant)
	fs := cmd.Flags()
	fs.BoolVar(&f.models, "models", false, "call each model of the agents in --config, and check nothing else")
	fs.StringVar(&f.config, "config", defaultConfig, "`FILE` with agents and providers, for --models")
	fs.BoolVar(&f.quick, "quick", false, "do not read the store")
	fs.BoolVar(&f.query.Deep, "deep", false, "read payloads too, and compare what is derived from the log with a replay")
	fs.BoolVar(&f.query.Repair, "repair", false, "remove wrong caches, and payloads older than an hour that nothing names")
	fs.BoolVar(&f.quarantine, "quarantine", false, "remove what cannot be read from the files in --data, and keep a copy; no node may run on the folder")
	fs.StringVar(&f.accept, "accept-loss", "", "accept that this `STREAM` of the log lost messages: its agents continue with what is left")
	fs.StringVar(&f.reason, "reason", "", "`TEXT` of the reason for --accept-loss; it is stored with your name")
	fs.StringVar(&f.salvage, "salvage", "", "copy what can be read in the folder --data, on which no node runs, to this new backup `FILE`")
	fs.IntVar(&f.query.Rate, "rate", 0, "read `N` frames in a second (0: the node decides)")
	return waitsFor(a.connects(cmd, 0), "all of it")
}

// acceptLoss has a node record that a loss is accepted.
func (a *app) acceptLoss(ctx context.Context, f doctorFlags, agent string) error {
	switch {
	case f.accept == "" || f.reason == "":
		return usage("--accept-loss names a stream of the log, and needs a --reason, which is kept")
	case f.asksNode(agent):
		return usage("--accept-loss examines nothing: leave all but --reason out")
	}
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	by := operator()
	loss, err := c.AcceptLoss(ctx, client.AcceptLoss{Stream: f.accept, By: by, Reason: f.reason})
	if err != nil {
		return err
	}
	if a.json() {
		return a.object(struct {
			Stream string `json:"stream"`
			By     string `json:"by"`
			Reason string `json:"reason"`
			Loss   string `json:"loss"`
		}{f.accept, by, f.reason, loss})
	}
	a.printf("the loss of stream %s is accepted by %s: %s\n", f.accept, by, loss)
	return nil
}

// operator is who runs this program, by what the system says.
func operator() string {
	name := cmp.Or(machineUser(), "unknown")
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// finding is one thing that doctor looked at.
type finding struct {
	Check string `json:"check"`
	// Status is ok, warn, fail or note.
	Status string `json:"status"`
	Detail string `json:"detail"`
}

func (a *app) runDoctor(ctx context.Context, f doctorFlags, agent string) (err error) {
	switch {
	case f.models && (f.asksNode(agent) || f.quarantine || f.salvage != "" || f.accept != ""):
		return usage("--models asks models and nothing else: leave all but --config and --timeout out")
	case f.models:
		return a.doctorModels(ctx, f.config)
	case f.salvage != "":
		return a.salvage(ctx, f, agent)
	case f.quarantine:
		return a.quarantine(ctx, f, agent)
	case f.accept != "" || f.reason != "":
		return a.acceptLoss(ctx, f, agent)
	case agent != "" && f.query.Repair:
		return usage("--repair is for the whole store: leave the agent out")
	case f.query.Rate < 0:
		return usage("--rate %d: it must be positive", f.query.Rate)
	case f.quick && (f.query.Deep || f.query.Repair || f.query.Rate > 0):
		return usage("--quick does not read the store: leave it out, or --deep, --repair and --rate")
	case agent != "" && f.quick:
		return usage("--quick reads no agent: leave one of them out")
	case agent != "":
		if agent, err = address(agent); err != nil {
			return err
		}
	}
	if err := messages.ValidateToken("tenant", f.tenant); err != nil {
		return usage("%v", err)
	}
	if a.offline(f, agent) {
		if done, err := a.doctorFolder(ctx); done {
			return err
		}
	}
	var found []finding
	if agent == "" {
		found = a.examine(ctx, f.tenant)
		a.findings(found)
	}
	rest := slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.Check == "nodes" })
	if !f.quick && !ill(rest) { // nodes that report damage can read the store
		results, err := a.examineStore(ctx, agent, f.query)
		if errors.Is(err, client.ErrNotAllowed) && agent == "" && !f.query.Repair {
			results, err = []finding{{"store", "note", "this user may not check the store, because it covers all tenants; name an agent to check that one"}}, nil
		}
		if err != nil {
			return err
		}
		a.findings(results)
		found = append(found, results...)
	}
	return a.outcome(found)
}

// concluded writes all that was looked at; a failure among it is one of the command.
func (a *app) concluded(found ...finding) error {
	a.findings(found)
	return a.outcome(found)
}

// outcome writes findings as JSON if that is asked for; a failure among them is one of the
// command.
func (a *app) outcome(found []finding) error {
	if a.json() {
		err := a.object(struct {
			OK     bool      `json:"ok"`
			Checks []finding `json:"checks"`
		}{!ill(found), found})
		if err != nil {
			return err
		}
	}
	if ill(found) {
		return silent(exitFailed)
	}
	return nil
}

func ill(found []finding) bool {
	return slices.ContainsFunc(found, func(f finding) bool { return f.Status == "fail" })
}

// findings writes what was looked at, for people.
func (a *app) findings(found []finding) {
	if a.json() {
		return
	}
	for _, f := range found {
		status := fmt.Sprintf("%-4s", f.Status)
		if f.Status == "fail" || f.Status == "warn" {
			status = a.red(a.out, status)
		}
		a.printf("%s  %-12s  %s\n", status, f.Check, a.timed(projections.Printable(f.Detail, 0)))
	}
}

// examineStore has a node read the store, or one agent.
func (a *app) examineStore(ctx context.Context, agent string, q messages.Query) ([]finding, error) {
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	x := a.examination()
	if err := x.remote(ctx, c, agent, q); err != nil {
		x.line.end()
		return nil, err
	}
	return append(append(x.encryption(), x.scrub()...), x.result()), nil
}

func (a *app) examine(ctx context.Context, tenant string) (found []finding) {
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		return []finding{a.failed("server", err)}
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	found = append([]finding{{"server", "ok", c.Server() + " answers"}}, a.cluster(ctx, c)...)
	return append(found,
		a.backlog(ctx, c), a.population(ctx, c, tenant), a.deadLetters(ctx, c, tenant),
		finding{"sync", "note", "unknown from here: a node logs at its start whether acknowledged data is on disk"},
		a.isolation(ctx, c))
}

// isolation is which account this user is in. Whether tenants share it with the
// nodes is reported by a node, which knows them.
func (a *app) isolation(ctx context.Context, c *client.Client) finding {
	const advice = "within one NATS account tenants are not isolated: `reprise permissions` prints accounts for them"
	who, err := c.Login(ctx)
	switch {
	case errors.Is(err, client.ErrNotAllowed):
		return finding{"tenants", "note", "this user may not query its NATS account, as is right for a user of a tenant"}
	case err != nil:
		return finding{"tenants", "note", "the server does not report the NATS account of this user; " + advice}
	case who.Account == client.GlobalAccount:
		return finding{"tenants", "note", "this user is in the NATS account " + who.Account + ", the default; " + advice}
	}
	return finding{"tenants", "note", fmt.Sprintf("this is user %s of the NATS account %s; %s", who.User, who.Account, advice)}
}

// waitsLong is how long an input may wait before it is reported: a node that works
// takes it at once, also while its agent is busy.
const waitsLong = time.Minute

// failed is what could not be looked at, with what to do about it.
func (a *app) failed(check string, err error) finding {
	f := a.failure(err)
	if f.do != "" {
		return finding{check, "fail", f.what + "; " + f.do}
	}
	return finding{check, "fail", f.what}
}

// backlog looks at the work queue.
func (a *app) backlog(ctx context.Context, c *client.Client) finding {
	n, oldest, err := c.Backlog(ctx)
	switch {
	case errors.Is(err, client.ErrNotAllowed):
		return finding{"queue", "note", "this user may not read it, because it covers all tenants"}
	case err != nil:
		return a.failed("queue", err)
	}
	return queued(n, oldest, time.Now())
}

// queued judges a queue by the age of its oldest message.
func queued(n uint64, oldest, now time.Time) finding {
	text := english.Plural(int(n), "input or command is", "inputs and commands are") + " stored and not yet applied"
	if n > 0 && now.Sub(oldest) > waitsLong {
		return finding{"queue", "warn", fmt.Sprintf("%s, the oldest since %s; see that a node serves their kinds, and what the nodes log", text, oldest.UTC().Format(time.DateTime))}
	}
	return finding{"queue", "ok", text}
}

// population counts a tenant's agents by phase, which only a node knows.
func (a *app) population(ctx context.Context, c *client.Client, tenant string) finding {
	phases := make(map[string]int)
	known := 0
	for agent, err := range c.Agents(ctx, tenant) {
		if err != nil {
			return a.failed("node", err)
		}
		phases[string(agent.Phase)]++
		known++
	}
	text := fmt.Sprintf("a node answers; tenant %s has %s", tenant, english.Plural(known, "agent", ""))
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		parts = append(parts, fmt.Sprintf("%d %s", phases[phase], phase))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if phases["paused"] > 0 {
		return finding{"node", "warn", text + "; `" + a.started + " ls --phase paused` lists those that wait for a person"}
	}
	return finding{"node", "ok", text}
}

func (a *app) deadLetters(ctx context.Context, c *client.Client, tenant string) finding {
	n, refused := 0, 0
	var newest messages.DeadLetter
	for l, err := range c.DeadLetters(ctx, tenant) {
		if err != nil {
			return a.failed("dead letters", err)
		}
		if answered(l) {
			refused++
		} else {
			n, newest = n+1, l
		}
	}
	besides := ""
	if refused > 0 {
		besides = fmt.Sprintf("; commands that were refused while the sender waited for the answer: %d", refused)
	}
	if n == 0 {
		return finding{"dead letters", "ok", "none" + besides}
	}
	return finding{"dead letters", "warn", fmt.Sprintf("%d, the newest: %s; `%s dlq ls` lists them%s", n, newest.Reason, a.started, besides)}
}

// answered reports whether a dead letter is a command whose sender wanted an answer, and so
// was sent why it was refused.
func answered(l messages.DeadLetter) bool {
	_, rest, _ := strings.Cut(l.Subject, ".")
	return strings.HasPrefix(rest, "ctl.") && len(l.Headers[messages.HeaderReply]) > 0
}
