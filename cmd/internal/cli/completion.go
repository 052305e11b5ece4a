package cli

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/gateway"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
	"github.com/reprise-dev/reprise/projections/index"
)

// completing is how long the cluster may take to be asked for what can be written: a shell waits.
const completing = time.Second

// fixed are the flags that take one of a few words, with the command before one that means
// something else in another.
func fixed() map[string][]string {
	return map[string][]string{
		"export as": exportForms, "by": index.By, "format": {"text", "json"}, "how": {messages.CompactSummary, messages.CompactWindow},
		"last": {string(projections.Failed)}, "log-format": {"text", "json"}, "log-level": {"debug", "info", "warn", "error"},
		"outcome": asText(projections.Outcomes), "output": {"text", "json"},
		"phase":  asText([]messages.AgentPhase{messages.PhaseIdle, messages.PhaseRunning, messages.PhasePaused, messages.PhaseDeleted}),
		"policy": asText(messages.Policies()), "sync": {"always", "relaxed"},
	}
}

// files are the flags that take a file or a folder, which shells complete by themselves.
var files = []string{"accept", "auth", "candidate", "config", "creds", "data", "from-file", "index-dir", "key-file", "nkey", "redact", "salvage", "system-creds", "tlsca", "tlscert", "tlskey", "to"}

// completion adds to root the command completion, that of cobra with a help of its own.
func completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, _ := root.Find([]string{"completion"})
	cmd.Short = "Print the script with which a shell completes commands"
	cmd.Long = `Print the script with which a shell completes commands, flags and, while a node runs, agents,
turns, calls and nodes. Write it to where the shell looks for it, then start a new shell:

  bash         reprise completion bash >/etc/bash_completion.d/reprise
  zsh          reprise completion zsh >"${fpath[1]}/_reprise"
  fish         reprise completion fish >~/.config/fish/completions/reprise.fish
  powershell   reprise completion powershell >>$PROFILE

Bash needs the package bash-completion. Zsh needs "autoload -U compinit; compinit" in ~/.zshrc.`
	for _, shell := range cmd.Commands() {
		shell.Short = "Print the script for " + shell.Name()
		shell.Long = shell.Short + `. "reprise completion --help" shows where it is installed.`
	}
}

// completed has shells complete the arguments and flags of cmd and of those below it.
func (a *app) completed(cmd *cobra.Command) {
	if arguments(cmd.Use) != nil || !cmd.HasSubCommands() {
		cmd.ValidArgsFunction = a.completeArgument
	}
	completes := func(f *pflag.Flag) {
		if !slices.Contains(files, f.Name) && f.Value.Type() != "bool" {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
				return a.completeFlag(cmd, f.Name, args, begun)
			})
		}
	}
	cmd.Flags().VisitAll(completes)
	cmd.PersistentFlags().VisitAll(completes)
	for _, below := range cmd.Commands() {
		a.completed(below)
	}
}

func (a *app) completeArgument(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	names := arguments(cmd.Use)
	at := len(args)
	if last := len(names) - 1; at > last && last >= 0 && strings.Contains(names[last], "...") {
		at = last
	}
	if at >= len(names) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	switch name := strings.Trim(names[at], "[]."); {
	case name == "FILE":
		return nil, cobra.ShellCompDirectiveDefault
	case strings.Contains(name, "|") && name == strings.ToLower(name): // words to write as they are
		return strings.Split(name, "|"), cobra.ShellCompDirectiveNoFileComp
	default:
		return a.candidates(cmd, name, args, begun)
	}
}

func (a *app) completeFlag(cmd *cobra.Command, flag string, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	all := fixed()
	if words := slices.Concat(all[cmd.Name()+" "+flag], all[flag]); len(words) > 0 {
		return words, cobra.ShellCompDirectiveNoFileComp
	}
	return a.candidates(cmd, "--"+flag, args, begun)
}

// candidates asks the cluster what can be written for an argument or a flag. It answers with
// nothing where the cluster does not.
func (a *app) candidates(cmd *cobra.Command, name string, args []string, begun string) (found []string, how cobra.ShellCompDirective) {
	how = cobra.ShellCompDirectiveNoFileComp
	source := sources[cmd.Name()+" "+name]
	if source == nil {
		source = sources[name]
	}
	if source == nil || a.fromEnvironment(cmd, args) != nil {
		return nil, how
	}
	a.remote.read(cmd)
	a.remote.timeout = completing
	c, ctx, done, err := a.client(cmd.Context())
	if err != nil {
		return nil, how
	}
	defer done()
	source(ctx, c, args, begun, func(word, about string) {
		if word == "" || !strings.HasPrefix(word, begun) || slices.ContainsFunc(found, func(f string) bool { return f == word || strings.HasPrefix(f, word+"\t") }) {
			return
		}
		if about != "" {
			word += "\t" + projections.Printable(about, 60)
		}
		found = append(found, word)
	})
	if slices.ContainsFunc(found, func(word string) bool { return strings.HasSuffix(word, "/") }) {
		how |= cobra.ShellCompDirectiveNoSpace // a kind, behind which a key is written
	}
	return found, how
}

// source passes what can be written to add, each with a few words about it. args are the
// arguments before it, and begun its beginning.
type source func(ctx context.Context, c *client.Client, args []string, begun string, add func(word, about string))

// sources are those of arguments and flags, by name, with that of the command before it where
// it means something else there.
var sources = map[string]source{
	"AGENT":       agentsAndKinds,
	"CALL":        ofAgent(messages.Query{View: "approvals"}, func(p messages.Approval) (string, string) { return string(p.Call), callText(p.Tool, p.Arguments) }),
	"decide CALL": ofAgent(messages.Query{View: "effects", Outcome: string(projections.CallUnknown)}, calledAs),
	"EVENT|CALL":  ofAgent(messages.Query{View: "effects"}, calledAs),
	"FORK":        agentsAndKinds,
	"NODE":        nodeNames,
	"OTHER":       agentsAndKinds,
	"SEQ":         ofTenant(messages.Query{View: "dlq"}, func(l messages.DeadLetter) (string, string) { return strconv.FormatUint(l.Seq, 10), l.Reason }),
	"TOOL":        ofAgent(messages.Query{View: "approvals", Remembered: true}, func(r messages.Remembered) (string, string) { return r.Tool, r.Decision }),
	"TURN":        turnIDs,
	"--as":        agentsAndKinds,
	"--kind":      kinds,
	"--timer":     ofAgent(messages.Query{View: "timers"}, func(t messages.Timer) (string, string) { return t.Timer, t.Text }),
	"--tool":      ofTenant(messages.Query{View: "effects", Limit: mostSought}, func(e projections.Effect) (string, string) { return e.Tool, "" }),
	"--turn":      turnIDs,
}

// mostSought is how many lines of a list are looked through.
const mostSought = 1000

// turnIDs are the turns of an agent.
var turnIDs = ofAgent(messages.Query{View: "turns"}, func(t projections.Turn) (string, string) { return string(t.ID), string(t.Phase) })

// calledAs returns the id of a call, and what was called.
func calledAs(e projections.Effect) (id, about string) {
	return string(e.ID), callText(e.Tool, e.Arguments)
}

// ofAgent is what the lines of a view of the agent say that was named before.
func ofAgent[T any](q messages.Query, text func(T) (word, about string)) source {
	return func(ctx context.Context, c *client.Client, args []string, _ string, add func(word, about string)) {
		if len(args) > 0 {
			texted(c.Query(ctx, args[0], q), text, add)
		}
	}
}

// ofTenant is what the lines of a view of the default tenant say.
func ofTenant[T any](q messages.Query, text func(T) (word, about string)) source {
	return func(ctx context.Context, c *client.Client, _ []string, _ string, add func(word, about string)) {
		texted(c.QueryTenant(ctx, messages.DefaultTenant, q), text, add)
	}
}

// texted adds what text makes of lines, until they end or there is an error.
func texted[T any](lines iter.Seq2[json.RawMessage, error], text func(T) (word, about string), add func(word, about string)) {
	for line, err := range lines {
		if err != nil {
			return
		}
		add(text(raw[T](line)))
	}
}

// agentsAndKinds adds agents whose address begins so, and the kinds that may have others.
func agentsAndKinds(ctx context.Context, c *client.Client, args []string, begun string, add func(word, about string)) {
	tenant, q := messages.DefaultTenant, messages.Query{View: "agents", Limit: mostSought}
	switch parts := strings.Split(begun, "/"); len(parts) {
	case 2:
		q.Kind = parts[0]
	case 3:
		tenant, q.Kind = parts[0], parts[1]
	}
	texted(c.QueryTenant(ctx, tenant, q), func(r projections.Agent) (string, string) { return r.Agent.String(), string(r.Phase) }, add)
	kinds(ctx, c, args, begun, func(kind, _ string) { add(kind+"/", "") })
}

// kinds adds the kinds that nodes serve.
func kinds(ctx context.Context, c *client.Client, _ []string, _ string, add func(word, about string)) {
	nodes, _ := storeRows[gateway.NodeRow](ctx, c, "nodes") // a user who may not ask gets no words
	for _, n := range nodes {
		for _, kind := range n.Kinds {
			add(kind, "")
		}
	}
}

// nodeNames adds the names of nodes, and their ids.
func nodeNames(ctx context.Context, c *client.Client, _ []string, _ string, add func(word, about string)) {
	nodes, _ := storeRows[gateway.NodeRow](ctx, c, "nodes") // as above
	for _, n := range nodes {
		add(n.Host, "")
		add(n.Node, n.Host)
	}
}
