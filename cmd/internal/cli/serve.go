package cli

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster"
)

type serveFlags struct {
	data, listen, config, sync, keys string
	views                            string
	replicas, snapshotEvery          int
	idle                             time.Duration
}

func (a *app) serve() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use: "serve", GroupID: groupRun, Args: cobra.NoArgs,
		Short: "Run a node with the agents of a reprise.yaml",
		Long: `Run a node with the agents of a reprise.yaml.

With --nats, --context or NATS_URL it uses that server; otherwise, and with
--data or --listen, it embeds one. SIGINT and SIGTERM stop it; a second signal
ends it at once.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			local := cmd.Flags().Changed("data") || cmd.Flags().Changed("listen")
			return a.runServe(cmd.Context(), f, local)
		},
	}
	a.serverFlags(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.config, "config", defaultConfig, "file with agents, tools and providers")
	fs.StringVar(&f.data, "data", defaultData, "folder of the embedded NATS server")
	fs.StringVar(&f.listen, "listen", usualAddress, "address of the embedded NATS server")
	fs.StringVar(&f.sync, "sync", "always", "of the embedded server: always (what is acknowledged is on disk) or relaxed (within a second)")
	fs.StringVar(&f.views, "views", "", "folder of the views of the fleet, a cache of this node alone (default: in --data, or with --nats a temporary one)")
	fs.IntVar(&f.replicas, "replicas", 1, "copies of each stream that is created")
	fs.DurationVar(&f.idle, "idle", 5*time.Minute, "how long an idle agent stays in memory")
	fs.IntVar(&f.snapshotEvery, "snapshot-every", 0, "how many events an agent writes, at least, between two snapshots; negative: none are made (default: 128)")
	keyFlag(cmd, &f.keys)
	fs.BoolVarP(&a.verbose, "verbose", "v", false, "log more of what the node does")
	return cmd
}

func (a *app) runServe(ctx context.Context, f serveFlags, local bool) error {
	o := a.remote.options
	if o.URL == "" && o.Context == "" && !local {
		o.URL = os.Getenv("NATS_URL")
	}
	external := o.URL != "" || o.Context != ""
	switch err := syncMode(f.sync); {
	case err != nil:
		return err
	case external && local:
		return usage("--data and --listen belong to the embedded server: leave them out, or --nats and --context")
	case !external && f.replicas > 1:
		return usage("--replicas %d: an embedded server stands alone; give --nats a cluster of servers", f.replicas)
	case f.replicas < 1 || f.idle <= 0:
		return usage("--replicas and --idle must be positive")
	}
	cfg := cluster.Config{
		Root: o.Root, Replicas: f.replicas, IdleAfter: f.idle, SnapshotEvery: f.snapshotEvery, Version: versionText(),
		Views: f.views, Providers: withDemo(), Logger: a.logger(slog.LevelInfo),
	}
	if external {
		var err error
		if cfg.NATS, cfg.NATSOptions, err = o.Resolve(); err != nil {
			return err
		}
	} else {
		cfg.Data, cfg.Listen, cfg.Sync = f.data, f.listen, f.sync
	}
	if err := fromFile(f.config, f.keys, &cfg, false); err != nil {
		return err
	}
	n := &node{app: a, cfg: cfg, mode: "serve"}
	n.ready = n.explain
	return n.run(ctx)
}

// explain says what is not obvious from the line that says ready.
func (n *node) explain(running *cluster.Node) {
	if running.Partitions() == 0 {
		n.app.printf("  standby: other nodes own every partition; requests are forwarded to them, and this node takes over when one is gone\n")
	}
	if running.Sync() == "unknown" {
		n.app.printf("  sync unknown: the server is not ours; set sync_interval: always in its jetstream block, or the last moments before a loss of power may be lost\n")
	}
}
