package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/projections"
)

func (a *app) backup() *cobra.Command {
	var force, keys bool
	cmd := &cobra.Command{
		Use: "backup [--keys] FILE", GroupID: groupKeep, Args: cobra.ExactArgs(1),
		Short: "Copy the whole store to a file while it is in use",
		Long: `Copy the whole store to a file while it is in use; - writes to standard output.

The file contains everything that was acknowledged before the backup began: waiting inputs, dead
letters, all logs, definitions and payloads. Each stream is copied as of one moment, but not all
streams as of the same moment: restored agents continue as after a crash at that moment.

The keys of encrypted agents are not in a backup, so that a backup alone does not reveal its
contents. --keys copies the keys, and only these; without them a backup of an encrypted store
cannot be read, so copy them after each backup. The keys are wrapped: the file is of no use
without the wrapping key. Keep the wrapping key, the keys and the backups in different places.
The key of a deleted agent is not in the file, but is in older copies: keep only the newest one
and destroy the others. Otherwise the deleted agent can still be read from an old copy, a backup
and the wrapping key together.

The command needs an administrator's permissions: $JS.API.STREAM.>, $JS.API.CONSUMER.> and
$JS.SNAPSHOT.>. The file gets its name only when it is complete.`,
		Example: `  reprise backup store.tar
  reprise backup --keys --force store.keys`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if keys {
				return a.runBackupKeys(ctx, args[0], force)
			}
			return a.runBackup(ctx, args[0], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE if it exists")
	cmd.Flags().BoolVar(&keys, "keys", false, "copy only the wrapped keys of encrypted agents")
	return waitsFor(a.connects(cmd, 0), "all of it")
}

func (a *app) runBackup(ctx context.Context, name string, force bool) error {
	line := a.progress()
	return a.copied(ctx, name, force, func(ctx context.Context, w io.Writer, cfg backup.Config) (contents, error) {
		cfg.Progress = func(p backup.Progress) {
			line.show("backup %3.0f%%  %s, %d of %d  %s", 100*p.Done, p.Stream, p.Number, p.Streams, size(p.Bytes))
		}
		m, err := backup.Write(ctx, w, cfg)
		if line.end(); err != nil {
			return contents{}, err
		}
		c := contents{text: manifestText(m), json: m}
		if m.Encrypted() {
			c.remark = fmt.Sprintf("agents in it are encrypted and their keys are not in it: copy them, to another place, with `%s backup --keys FILE`", a.started)
		}
		return c, nil
	})
}

// contents are what is in a copy: in one line, in JSON, and what must be known of a file with it.
type contents struct {
	text   string
	json   any
	remark string
}

// copied makes a file of what write copies, or for - standard output, and prints what is in it.
func (a *app) copied(ctx context.Context, name string, force bool, write func(context.Context, io.Writer, backup.Config) (contents, error)) error {
	cfg, err := a.copies(name, force)
	if err != nil {
		return err
	}
	defer cfg.Conn.Close()
	ctx, cancel := a.limited(ctx)
	defer cancel()
	if name == "-" {
		c, err := write(ctx, a.out, cfg)
		if err == nil {
			a.note("%s", c.text)
		}
		return err
	}
	var c contents
	err = whole(name, func(w io.Writer) (err error) {
		c, err = write(ctx, w, cfg)
		return err
	})
	if err != nil {
		return err
	}
	if c.remark != "" {
		a.note("%s", c.remark)
	}
	if a.json() {
		return a.object(c.json)
	}
	a.printf("%s: %s\n", name, c.text)
	return nil
}

// copies connects to the server that is copied from to a file of that name. The
// caller closes the connection.
func (a *app) copies(name string, force bool) (cfg backup.Config, err error) {
	if name == "" {
		return cfg, usage("the name of the file is empty: name one, or - for standard output")
	}
	if name != "-" {
		if err := writable(name, force); err != nil {
			return cfg, err
		}
	}
	a.leftOver("backup", name, ".", ".part")
	o, file, err := a.server()
	if err != nil {
		return cfg, err
	}
	return a.dial(o, file)
}

// manifestText returns what is in a backup in one line.
func manifestText(m *backup.Manifest) string {
	return projections.Printable(fmt.Sprintf("%d streams of root %s, %d messages, %s, begun %s by %s", len(m.Streams), m.Root, m.Messages(), size(m.Size()), m.Begun.UTC().Format(time.DateTime), m.Version), 0)
}

// writable returns why a file of that name cannot be written, as far as that is seen
// before there is anything to write.
func writable(name string, force bool) error {
	file, err := os.Stat(name)
	if _, missing := os.Stat(filepath.Dir(name)); errors.Is(missing, fs.ErrNotExist) {
		return fail("make it first, or choose another name", "the folder %s does not exist", filepath.Dir(name))
	}
	switch {
	case err == nil && file.IsDir():
		return fail("name a file in it", "%s is a folder", name)
	case err == nil && !force:
		return fail("choose another name, or replace it with --force", "%s is there already", name)
	}
	return nil
}

// leftOver names what earlier commands have left beside path that were killed: they
// gave it that name with before and after around some digits.
func (a *app) leftOver(command, path, before, after string) {
	beside, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return // the command itself meets that
	}
	var left []string
	for _, e := range beside {
		digits, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+before)
		digits, part := strings.CutSuffix(digits, after)
		if ok && part && digits != "" && strings.Trim(digits, "0123456789") == "" {
			left = append(left, quoted(filepath.Join(filepath.Dir(path), e.Name())))
		}
	}
	if len(left) > 0 {
		a.note("an earlier %s was cut short, or runs still, and has left %s: remove what is not used", command, strings.Join(left, " "))
	}
}

// whole writes a file that only its owner reads under another name, and gives it its own when it
// is whole and on disk. A process that is killed leaves <name>.<digits>.part.
func whole(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		if err = os.Rename(f.Name(), name); err == nil {
			return syncPath(filepath.Dir(name))
		}
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// written writes text.
func written(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// syncPath forces a file or folder to disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncTree forces everything below a folder to disk. What is being removed
// meanwhile is passed over.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.Type().IsRegular() || d.IsDir()) {
			err = syncPath(path)
		}
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		return err
	})
}
