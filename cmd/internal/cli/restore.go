package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/cluster/integrity"
	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

type restoreFlags struct {
	again, dry, unchecked, keys bool
	replicas                    int
	keyFile                     string
	// rooted reports whether --root was given.
	rooted bool
}

func (a *app) restore() *cobra.Command {
	var f restoreFlags
	cmd := &cobra.Command{
		Use: "restore [--keys] FILE", GroupID: groupKeep, Args: cobra.ExactArgs(1),
		Short: "Make a store from a backup",
		Long: `Make a store from a backup.

With --nats, --context or NATS_URL the streams are made on that server, which must have no stream
of the installation and no running node. Otherwise, and with --data, a new folder is made, for
serve --data or dev --data. The whole file is checked before anything is written, and the whole
store after it is made (see "reprise doctor").

A restore that is interrupted leaves nothing that a node would start on. Agents continue from
their newest event in the backup, as after a crash: tools that may run again may do so, other
calls wait for a person.

With --keys, FILE is a copy of the keys of encrypted agents (backup --keys). The keys are put
back into a store that lacks them: that of a server, of a running node, or of the folder --data.
A key is put back only for an agent that is in the store, is not deleted, has events that are
encrypted with the key, and has no key or a damaged one. If the wrapping key is given, as to
serve, each key is tried first.`,
		Example: `  reprise restore store.tar --data ./again
  reprise restore store.tar --nats nats://n1,n2,n3 --replicas 3
  reprise restore --keys store.keys --data ./again --key-file wrapping.key`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			f.rooted = cmd.Flags().Changed("root")
			switch args[0] {
			case "":
				return usage("the name of the file is empty: name the one to read")
			case "-":
				return usage("a backup is read twice: write it to a file first")
			}
			if f.keys {
				return a.runRestoreKeys(ctx, args[0], f)
			}
			if f.keyFile != "" {
				return usage("--key-file is for --keys: frames are restored as they are")
			}
			return a.runRestore(ctx, args[0], f)
		},
	}
	a.serverFlags(cmd)
	fs := cmd.Flags()
	fs.StringVar(&a.remote.data, "data", defaultData, "`FOLDER` to make, if no server is named; if the flag is given, it comes before NATS_URL")
	fs.BoolVar(&f.keys, "keys", false, "put back the keys of encrypted agents that \"backup --keys\" has copied")
	fs.StringVar(&f.keyFile, "key-file", "", "with --keys: `FILE` with the wrapping key to try the keys with (default: $"+keyVariable+")")
	fs.BoolVar(&f.again, "again", false, "remove what an interrupted restore has left on that server")
	fs.BoolVar(&f.dry, "dry-run", false, "only check the file and print what is in it")
	fs.BoolVar(&f.unchecked, "no-check", false, "do not check the store after it is made")
	fs.IntVar(&f.replicas, "replicas", 0, "keep `N` copies of each stream (0: as many as in the backup)")
	return cmd
}

func (a *app) runRestore(ctx context.Context, name string, f restoreFlags) error {
	if f.replicas < 0 {
		return usage("--replicas %d: it must be positive", f.replicas)
	}
	o, named := a.named(a.remote.chosen)
	switch {
	case named && a.remote.chosen:
		return usage("--data makes a folder, and --nats or --context name a server: leave one of them out")
	case !named && f.replicas > 1:
		return usage("--replicas %d: the server of a folder stands alone; give --nats a cluster of servers", f.replicas)
	case !named && !f.dry:
		if err := vacant(a.remote.data); err != nil {
			return err
		}
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	m, err := a.verify(file)
	if err != nil || f.dry {
		return err
	}
	if !f.rooted {
		o.Root = m.Root
	}
	line := a.progress()
	cfg := backup.RestoreConfig{Again: f.again, Replicas: f.replicas}
	cfg.Root, cfg.Progress = o.Root, func(p backup.Progress) {
		line.show("restore %3.0f%%  %s, %d of %d  %s", 100*p.Done, p.Stream, p.Number, p.Streams, size(p.Bytes))
	}
	r := &restoring{app: a, file: file, cfg: cfg, check: !f.unchecked, line: line}
	if named {
		err = r.server(ctx, o)
	} else {
		err = r.folder(ctx, a.remote.data)
	}
	line.end()
	if err == nil && r.ill {
		return fail("the backup has the same faults; agents that are not named are not affected", "the store was restored and is not sound")
	}
	return err
}

// verify checks the file and prints what is in it.
func (a *app) verify(file *os.File) (*backup.Manifest, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	line, read := a.progress(), int64(0)
	m, err := backup.Verify(file, func(n int) {
		read += int64(n)
		line.show("check the file %3.0f%%", 100*float64(read)/float64(max(1, info.Size())))
	})
	line.end()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	if _, err := file.Seek(0, 0); err != nil {
		return nil, err
	}
	if a.json() {
		return m, a.object(m)
	}
	a.printf("%s is whole: %s\n", file.Name(), manifestText(m))
	if n := m.Deleted(); n > 0 {
		a.note("%d agents were deleted while it was taken, and are not restored", n)
	}
	if m.Encrypted() {
		a.note("agents in it are encrypted and their keys (KV_%s_keys) are in no backup: put them back with `%s restore --keys FILE`, to the same --data or --nats, before a node starts, and start it with the wrapping key", m.Root, a.started)
	}
	return m, nil
}

// restoring is one restore of a file that is whole.
type restoring struct {
	app   *app
	file  *os.File
	cfg   backup.RestoreConfig
	check bool
	// ill reports whether something is wrong with what was restored.
	ill  bool
	line *progress
}

// server restores to a running NATS server.
func (r *restoring) server(ctx context.Context, o client.Options) error {
	store, err := r.app.dial(o, "")
	if err != nil {
		return err
	}
	r.cfg.Conn = store.Conn
	defer r.cfg.Conn.Close()
	if err := r.run(ctx); err != nil {
		return err
	}
	r.say("restored; start a node with `" + r.app.started + " serve --nats …`")
	return nil
}

// folder restores into a new folder of an embedded server. It has another name
// until it is whole.
func (r *restoring) folder(ctx context.Context, dir string) error {
	dir = filepath.Clean(dir)
	if err := vacant(dir); err != nil {
		return err
	}
	r.app.leftOver("restore", dir, ".restoring-", "")
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	half, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".restoring-*")
	if err != nil {
		return err
	}
	if err := r.fill(ctx, half); err != nil {
		return errors.Join(err, os.RemoveAll(half))
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is empty
		return fail("move it away; the restored store is complete in "+half, "the folder %s is no longer empty", dir)
	}
	if err := errors.Join(os.Rename(half, dir), syncPath(filepath.Dir(dir))); err != nil {
		return err
	}
	of := r.app.started + " %s --data " + quoted(dir)
	r.say(fmt.Sprintf("restored to %s; start a node on it with `"+of+"`, which needs a %s, or with `"+of+"`", dir, "serve", defaultConfig, "dev"))
	return nil
}

// vacant returns why no new folder can be made there.
func vacant(dir string) error {
	const do = "choose a new folder with --data, or move this one away"
	switch left, err := os.ReadDir(dir); {
	case err == nil && len(left) > 0:
		return fail(do, "the folder %s is not empty", dir)
	case errors.Is(err, syscall.ENOTDIR):
		return fail(do, "%s is a file, or is below a file: name a folder", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// fill restores into an empty folder and puts all of it on disk.
func (r *restoring) fill(ctx context.Context, dir string) error {
	store, stop, err := r.app.folderServer(dir, r.cfg.Root, embedded.SyncRelaxed)
	if err != nil {
		return err
	}
	r.cfg.Conn, r.cfg.Replicas = store.Conn, 1
	if err = errors.Join(r.run(ctx), stop()); err != nil {
		return err
	}
	return syncTree(dir)
}

// run restores over the connection and checks what was made.
func (r *restoring) run(ctx context.Context) error {
	_, err := backup.Restore(ctx, r.file, r.cfg)
	r.line.end()
	if err != nil || !r.check {
		return err
	}
	d, err := integrity.Doctor(ctx, r.cfg.Conn, r.cfg.Root, r.cfg.Replicas, r.app.logger(slog.LevelError))
	if err != nil {
		return fmt.Errorf("open what was restored: %w", err)
	}
	x := r.app.examination()
	if err := x.local(ctx, d); err != nil {
		return fmt.Errorf("examine what was restored: %w", err)
	}
	result := x.result()
	r.ill = result.Status == "fail"
	r.app.findings([]finding{result})
	return nil
}

func (r *restoring) say(text string) {
	if !r.app.json() {
		r.app.printf("%s\n", text)
	}
}
