package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers/demo"
)

// usualAddress is where an embedded server listens: the NATS tools look there.
const usualAddress = "127.0.0.1:4222"

type devFlags struct {
	data, listen, config, model, sync, keys, name, otlp string
	login                                               loginFlags
	http                                                httpFlags
}

func (a *app) dev() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use: "dev", GroupID: groupRun, Args: cobra.NoArgs,
		Short: "Run one node with an embedded NATS server, and demo agents",
		Long: `Run one node with an embedded NATS server. Nothing else needs to be installed.

The agents are those of ./reprise.yaml, or of --config. Without a file there are demo agents:
assistant, parrot, support, and team, which has assistant and support as tools. They use OpenAI
if OPENAI_API_KEY is set (at OPENAI_BASE_URL, if that is set), else a built-in model that works
offline.`,
		Example: `  reprise dev
  reprise dev --config reprise.yaml --data ./data`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runDev(cmd.Context(), f, cmd.Flags().Changed("listen"), cmd.Flags().Changed("http"))
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.data, "data", defaultData, "`FOLDER` for all data")
	fs.StringVar(&f.listen, "listen", usualAddress, "`ADDRESS` of the NATS server, host:port; if the flag is not given and the port is in use, another port is used")
	fs.StringVar(&f.config, "config", "", "`FILE` with agents (default: ./"+defaultConfig+", if it exists)")
	fs.StringVar(&f.model, "model", "", "`MODEL` of the demo agents, such as openai/gpt-5.5")
	fs.StringVar(&f.sync, "sync", "always", "`MODE` of writing to disk: always (before it is acknowledged) or relaxed (within a second)")
	f.login.add(cmd)
	keyFlag(cmd, &f.keys)
	nameFlag(cmd, &f.name)
	otlpFlag(cmd, &f.otlp)
	f.http.add(cmd)
	a.logFlags(cmd, slog.LevelWarn)
	return cmd
}

func (a *app) runDev(ctx context.Context, f devFlags, chosen, httpGiven bool) error {
	if err := syncMode(f.sync); err != nil {
		return err
	}
	logger, err := a.log()
	if err != nil {
		return err
	}
	cfg := cluster.Config{
		Name: f.name, Data: f.data, Listen: f.listen, Sync: f.sync, Version: versionText(),
		Providers: withDemo(demo.Delay(wordDelay)), Logger: logger,
	}
	if err := f.login.apply(&cfg); err != nil {
		return err
	}
	file, c, err := devAgents(f, &cfg)
	if err != nil {
		return err
	}
	if !chosen && embedded.Free(f.listen) != nil {
		cfg.Listen = "127.0.0.1:0"
		a.note("%s is in use: another port is used", f.listen)
	}
	if cfg.Telemetry, err = telemetryOf(f.otlp, c.Telemetry); err != nil {
		return err
	}
	n := &node{app: a, cfg: cfg, file: c, mode: "dev"}
	if err := n.serves(f.http, httpGiven); err != nil {
		return err
	}
	n.ready = func(running *cluster.Node, _ nodeStatus) {
		if a.logging.format != "json" { // it is for people
			n.tryThis(running.URL(), file == "")
		}
	}
	return n.run(ctx)
}

// devAgents loads the agents of the file named by --config, or of reprise.yaml if it exists, and
// returns its name and content.
func devAgents(f devFlags, cfg *cluster.Config) (file string, c *config.Config, err error) {
	file, c = f.config, new(config.Config)
	if file == "" {
		if _, err := os.Stat(defaultConfig); !errors.Is(err, fs.ErrNotExist) {
			file = defaultConfig
		}
	}
	switch {
	case file == "":
		cfg.PromptDecides = func(string, string) bool { return true }
		if cfg.WrappingKeys, err = wrappingKeys(f.keys, config.EncryptionConfig{}); err != nil {
			return file, c, err
		}
		return file, c, demoAgents(f.model, cfg)
	case f.model != "":
		return file, c, usage("--model is for the demo agents: %s names the models of its own", file)
	}
	c, err = fromFile(file, f.keys, cfg, true) // prompts come from the owner
	return file, c, err
}

// tryThis prints the commands to try next. demo reports whether the demo agents are
// there.
func (n *node) tryThis(url string, demo bool) {
	a, question := n.app, "What can you do?"
	for i, d := range n.cfg.Agents {
		var tools []string
		list := d.Tools
		for _, s := range d.Sources {
			now, _ := s.Tools()
			list = append(list[:len(list):len(list)], now...)
		}
		for _, t := range list {
			tools = append(tools, t.Spec().Name)
		}
		if i == 0 && slices.Contains(tools, "calculator") {
			question = "What is 17 times 3?"
		}
		with := ""
		if len(tools) > 0 {
			with = " with " + strings.Join(tools, ", ")
		}
		a.printf("  agent %s: %s%s\n", d.Kind, d.Model, with)
	}
	if len(n.cfg.Agents) == 0 {
		return
	}
	agent := messages.AgentID{Tenant: messages.DefaultTenant, Kind: n.cfg.Agents[0].Kind, Key: "main"}
	try := func(verb, agent, rest string) {
		words := []string{a.started, verb}
		if n.cfg.Data != defaultData || os.Getenv("NATS_URL") != "" {
			words = append(words, "--data", quoted(n.cfg.Data))
		}
		a.printf("  %s %s%s\n", strings.Join(words, " "), agent, rest)
	}
	a.printf("\nTry, in another terminal:\n\n")
	try("ask", agent.String(), ` "`+question+`"`)
	try("chat", agent.String(), "")
	try("events", agent.String(), " --follow")
	if demo {
		try("ask", "support/t1", ` "Refund 9900 cents for order 7"`)
		try("ask", "team/t1", ` "Ask support to refund 9900 cents for order 7"`)
		try("tree", "team/t1", "")
	}
	if n.cfg.Login != (embedded.Login{}) {
		a.printf("\nNATS clients log in with what is in %s.\n\nCtrl-C stops the node.\n", loginFile(n.cfg.Data))
		return
	}
	server := ""
	if url != "nats://"+usualAddress {
		server = "-s " + url + " "
	}
	a.printf("  nats pub %s%s \"%s\"\n\nCtrl-C stops the node.\n", server, messages.Subjects{Root: n.cfg.Root}.In(agent), question)
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("/._-=+:,@%", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
