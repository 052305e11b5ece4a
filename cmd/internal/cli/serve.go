package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

type serveFlags struct {
	data, listen, config, sync, keys string
	indexDir, name, otlp             string
	http                             httpFlags
	login                            loginFlags
	system                           client.Options
	replicas, snapshotEvery          int
	recoverRate, maxAgents           int
	idle, drainLimit                 time.Duration
	payloadMemory, agentMemory       byteSize
}

func (a *app) serve() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", GroupID: groupRun, Args: cobra.NoArgs,
		Short: "Run a node with the agents of a reprise.yaml",
		Long: `Run a node with the agents of a reprise.yaml.

With --nats, --context or NATS_URL, the node uses that NATS server. Otherwise, and with --data,
--listen, --auth or --sync, it embeds a server, which requires a login if other machines can
reach it. On SIGINT or SIGTERM the node gives its partitions to the other nodes and ends. A
second signal ends it at once.`,
		Example: `  reprise serve --config reprise.yaml
  reprise serve --nats nats://n1,n2,n3 --replicas 3 --http :8080 --name node-1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			local := cmd.Flags().Changed("data") || cmd.Flags().Changed("listen") || cmd.Flags().Changed("sync") || f.login.changed(cmd)
			return a.runServe(cmd.Context(), f, local, cmd.Flags().Changed("http"))
		},
	}
	a.serverFlags(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.config, "config", defaultConfig, "`FILE` with agents, tools and providers")
	fs.StringVar(&f.data, "data", defaultData, "`FOLDER` of the embedded NATS server")
	fs.StringVar(&f.listen, "listen", usualAddress, "`ADDRESS` of the embedded NATS server, host:port")
	fs.StringVar(&f.sync, "sync", "always", "`MODE` of writing to disk, of the embedded server: always (before it is acknowledged) or relaxed (within a second)")
	fs.StringVar(&f.system.Creds, "system-creds", "", "`FILE` with credentials of the server's system account, to read how often the server syncs to disk")
	fs.StringVar(&f.system.Context, "system-context", "", "`NAME` of a context of the nats command line tool for the system account")
	fs.StringVar(&f.indexDir, "index-dir", "", "`FOLDER` of the index of all agents, a cache of this node (default: in --data, or with --nats a temporary folder)")
	fs.IntVar(&f.replicas, "replicas", 0, "make `N` copies of each stream that the node creates (0: as many as the store has, 1 for a new store)")
	fs.DurationVar(&f.idle, "idle", 5*time.Minute, "`DURATION` for which an idle agent stays in memory")
	fs.IntVar(&f.maxAgents, "max-agents", 0, "keep at most `N` agents in memory; beyond that, idle agents leave it, least recently used first (default: one for each 8 KiB of the default of --agent-memory)")
	fs.Var(&f.agentMemory, "agent-memory", "memory that agents may use, in `BYTES` such as 1GiB; beyond that, idle agents leave it (default: an eighth of the machine's)")
	fs.DurationVar(&f.drainLimit, "drain-limit", 20*time.Second, "`DURATION` that a node that is stopped may take to give its partitions to the others; during a drain, how long each partition may wait for a call that must not be cut off")
	fs.IntVar(&f.snapshotEvery, "snapshot-every", 0, "write a snapshot of an agent at most every `N` events; negative: no snapshots (default: 128)")
	fs.IntVar(&f.recoverRate, "recover-rate", 0, fmt.Sprintf("after a takeover, start at most `N` interrupted model calls again in a second; negative: all at once (default: %d)", actors.DefaultRecoverRate))
	f.login.add(cmd)
	fs.Var(&f.payloadMemory, "payload-memory", "memory that requests to models, their answers and tool outputs may use together, in `BYTES` such as 2GiB; what does not fit waits (default: a quarter of the machine's)")
	keyFlag(cmd, &f.keys)
	nameFlag(cmd, &f.name)
	otlpFlag(cmd, &f.otlp)
	f.http.add(cmd)
	a.logFlags(cmd, slog.LevelInfo)
	return cmd
}

func (a *app) runServe(ctx context.Context, f serveFlags, local, httpGiven bool) error {
	o, external := a.named(local)
	switch err := syncMode(f.sync); {
	case err != nil:
		return err
	case external && local:
		return usage("--data, --listen, --auth, --insecure and --sync belong to the embedded server: leave them out, or --nats and --context")
	case !external && (f.system.Creds != "" || f.system.Context != ""):
		return usage("--system-creds and --system-context belong to --nats and --context: an embedded server's sync is known")
	case !external && f.replicas > 1:
		return usage("--replicas %d: an embedded server stands alone; give --nats a cluster of servers", f.replicas)
	case f.replicas < 0 || f.replicas > maxReplicas:
		return usage("--replicas %d: NATS keeps 1 to %d copies; 3 survive the loss of one server", f.replicas, maxReplicas)
	case f.maxAgents < 0:
		return usage("--max-agents %d: give a positive number, or leave it out for the default", f.maxAgents)
	case f.idle <= 0 || f.drainLimit <= 0:
		return usage("--idle and --drain-limit must be positive")
	}
	logger, err := a.log()
	if err != nil {
		return err
	}
	cfg := cluster.Config{
		Root: o.Root, Name: f.name, Replicas: f.replicas, IdleAfter: f.idle, MaxAgents: f.maxAgents, SnapshotEvery: f.snapshotEvery, DrainLimit: f.drainLimit, RecoverRate: f.recoverRate, Version: versionText(),
		PayloadMemory: int64(f.payloadMemory), AgentMemory: int64(f.agentMemory), IndexDir: f.indexDir, Providers: withDemo(), Logger: logger,
	}
	if external {
		if cfg.NATS, cfg.NATSOptions, err = o.Resolve(); err != nil {
			return err
		}
		if err = f.asSystem(&cfg); err != nil {
			return err
		}
	} else {
		cfg.Data, cfg.Listen, cfg.Sync = f.data, f.listen, f.sync
		if err = f.login.apply(&cfg); err != nil {
			return err
		}
	}
	file, err := fromFile(f.config, f.keys, &cfg, false)
	if err != nil {
		return err
	}
	if cfg.Telemetry, err = telemetryOf(f.otlp, file.Telemetry); err != nil {
		return err
	}
	n := &node{app: a, cfg: cfg, file: file, mode: "serve"}
	if err := n.serves(f.http, httpGiven); err != nil {
		return err
	}
	n.ready = n.explain
	return n.run(ctx)
}

// asSystem adds how to log in to the system account, if the flags say so.
func (f serveFlags) asSystem(cfg *cluster.Config) (err error) {
	if f.system.Creds == "" && f.system.Context == "" {
		return nil
	}
	f.system.URL = cfg.NATS // whatever the context says: it is that server which is asked
	_, cfg.System, err = f.system.Resolve()
	return err
}

// explain prints what is not obvious from the line that says ready.
func (n *node) explain(running *cluster.Node, s nodeStatus) {
	if s.Partitions == 0 {
		n.remark("other nodes own every partition; they give this one its share in a moment, if there are fewer than %d nodes and not all of them drain; it answers for them meanwhile", messages.Partitions)
	}
	switch least, alone, err := running.FewerCopies(context.Background()); {
	case err != nil || least == 0:
	case alone:
		n.remark("copies: %d were asked for, and the store has %d: more need a NATS cluster of at least %d servers, and this server stands alone; leave --replicas out, or move the store to a cluster with `%s backup` and `%s restore --replicas %d`",
			n.cfg.Replicas, least, n.cfg.Replicas, n.app.started, n.app.started, n.cfg.Replicas)
	default:
		n.remark("copies: the store was created with %d, and only new streams have %d; change the others with `%s store scale --replicas %d`", least, n.cfg.Replicas, n.app.started, n.cfg.Replicas)
	}
	switch {
	case s.Sync == natslog.SyncUnknown:
		n.remark("sync unknown: the server reports it only to its system account, see --system-creds and --system-context; set sync_interval: always in its jetstream block, or a loss of power may lose the newest data")
	case strings.HasPrefix(s.Sync, "every "):
		n.remark("sync %s: set sync_interval: always in the jetstream block of each server, or a loss of power may lose the newest data", s.Sync)
	}
}

// remark says more of the node below the line that says ready.
func (n *node) remark(format string, args ...any) {
	if log := n.app.records(n.app.out); log != nil {
		log.Warn(fmt.Sprintf(format, args...))
		return
	}
	n.app.printf("  "+format+"\n", args...)
}
