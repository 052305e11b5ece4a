package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize/english"

	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
	"github.com/reprise-dev/reprise/projections"
)

// runBackupKeys copies the agents' keys to a file.
func (a *app) runBackupKeys(ctx context.Context, name string, force bool) error {
	return a.copied(ctx, name, force, func(ctx context.Context, w io.Writer, cfg backup.Config) (contents, error) {
		cfg.Progress = a.keysProgress("copy")
		m, err := backup.WriteKeys(ctx, w, cfg)
		if err != nil {
			return contents{}, err
		}
		return contents{keysText(m), keysSummary{m, m.Keys, m.LeftOut},
			"the keys in it are wrapped and useless without the wrapping key; keep both apart from backups, and keep only the newest copy of the keys"}, nil
	})
}

func (a *app) keysProgress(what string) func(backup.Progress) {
	line := a.progress()
	return func(p backup.Progress) {
		if line.show(what+" keys %3.0f%%", 100*p.Done); p.Done == 1 {
			line.end()
		}
	}
}

// keysSummary is what is in a copy of keys, in JSON.
type keysSummary struct {
	*backup.Keys
	Count   int `json:"keys"`
	LeftOut int `json:"left_out"`
}

// keysText returns what is in a copy of keys in one line.
func keysText(m *backup.Keys) string {
	text := fmt.Sprintf("%s of root %s, wrapped by", english.Plural(m.Keys, "key", ""), m.Root)
	for _, mark := range m.Marks {
		text += " " + mark.ID
	}
	if m.LeftOut > 0 {
		text += fmt.Sprintf("; %d that no agent needs were left out", m.LeftOut)
	}
	return projections.Printable(text, 0)
}

// runRestoreKeys puts keys back.
func (a *app) runRestoreKeys(ctx context.Context, name string, f restoreFlags) error {
	ring, err := wrappingKeys(f.keyFile, config.EncryptionConfig{})
	if err != nil {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	m, err := backup.VerifyKeys(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if f.dry {
		return a.dryKeys(name, m, ring)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	store, done, err := a.keyed()
	if err != nil {
		return err
	}
	defer done()
	if store.Root = m.Root; f.rooted {
		store.Root = a.remote.options.Root
	}
	store.Progress = a.keysProgress("restore")
	cfg := backup.KeysConfig{Config: store, Wrapping: ring, Told: func(agent string, why error) {
		a.note("%s: its key is not put back: %s", projections.Printable(agent, 0), projections.Printable(why.Error(), 0))
	}}
	_, became, err := backup.RestoreKeys(ctx, file, cfg)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return a.printRestored(became, len(ring) > 0)
}

// dryKeys prints what is in a file that is whole.
func (a *app) dryKeys(name string, m *backup.Keys, ring []encrypted.Key) error {
	if len(ring) > 0 {
		if err := encrypted.Fits(m.Marks, ring...); err != nil {
			return err
		}
	}
	if a.json() {
		return a.object(keysSummary{m, m.Keys, m.LeftOut})
	}
	a.printf("%s is whole: %s\n", name, keysText(m))
	return nil
}

func (a *app) printRestored(r backup.KeysRestored, tried bool) error {
	if !tried {
		a.note("the keys were not tried: no wrapping key is given (--key-file or " + keyVariable + ")")
	}
	if a.json() {
		if err := a.object(r); err != nil {
			return err
		}
	} else {
		a.printf("%s put back, %d there already\n", english.Plural(r.Back, "key", ""), r.There)
	}
	if r.Back > 0 {
		a.note("a node that ran meanwhile lacks in its index (usage, effects, approvals) what it could not read, until it is started again")
	}
	if n := r.Other + r.Unused; n > 0 {
		a.note("%d were left out: their agents are deleted, made again, or not in this store", n)
	}
	if r.Failed > 0 {
		return fail("see why above; what was put back stays, and it can be done again", "%s could not be put back", english.Plural(r.Failed, "key", ""))
	}
	return nil
}

// keyed connects to the store whose keys are put back: that of a server, of a
// local node that runs, or of a folder on which none runs.
func (a *app) keyed() (store backup.Config, done func(), err error) {
	o, file, err := a.server()
	if err != nil || file != "" && !embedded.Used(a.remote.data) { // there is no node, or it is gone
		return a.keyedFolder()
	}
	store, err = a.dial(o, file)
	return store, store.Conn.Close, err
}

func (a *app) keyedFolder() (store backup.Config, done func(), err error) {
	dir := filepath.Clean(a.remote.data)
	if found, err := os.ReadDir(dir); err != nil || len(found) == 0 {
		if err == nil {
			err = fs.ErrNotExist
		}
		return store, nil, fail("name the folder with --data, or a server with --nats", "there is no store in %s: %v", dir, err)
	}
	store, stop, err := a.folderServer(dir, a.remote.options.Root, embedded.SyncAlways)
	return store, func() {
		if err := stop(); err != nil {
			a.note("the store's server did not stop in order: %v", err)
		}
	}, err
}
