package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
)

// asideFolder holds the folders of streams that are not opened, because the server would
// drop what it cannot read. They are put back at each start and verified again, whole.
const asideFolder = "damaged"

// globalAccount is the account that an embedded server has.
const globalAccount = server.DEFAULT_GLOBAL_ACCOUNT

// asideStreams returns the streams that are set aside.
func asideStreams(dir string) (out []blocks.Stream, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, asideFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the streams that are set aside: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, blocks.Stream{Account: globalAccount, Name: e.Name(), Dir: filepath.Join(dir, asideFolder, e.Name())})
		}
	}
	return out, nil
}

// streamsIn returns the streams in a folder, sorted by name. One that is set aside takes
// the place of the one that the server made for it.
func streamsIn(dir string) ([]blocks.Stream, error) {
	streams, err := blocks.Streams(dir)
	if err != nil {
		return nil, err
	}
	aside, err := asideStreams(dir)
	if err != nil {
		return nil, err
	}
	streams = slices.DeleteFunc(streams, func(s blocks.Stream) bool {
		return slices.ContainsFunc(aside, func(a blocks.Stream) bool { return a.Name == s.Name && a.Account == s.Account })
	})
	streams = append(streams, aside...)
	slices.SortFunc(streams, func(a, b blocks.Stream) int { return strings.Compare(a.Name, b.Name) })
	return streams, nil
}

// home is where the server has the folder of a stream.
func home(dir, stream string) string {
	return filepath.Join(dir, server.JetStreamStoreDir, globalAccount, "streams", stream)
}

// setAside moves a stream's folder to where the server does not find it.
func setAside(dir string, s blocks.Stream) error {
	if s.Dir != home(dir, s.Name) {
		return fmt.Errorf("stream %s of account %s is damaged: only streams of the server's own account can be set aside", s.Name, s.Account)
	}
	if err := os.MkdirAll(filepath.Join(dir, asideFolder), 0o700); err != nil {
		return fmt.Errorf("set stream %s aside: %w", s.Name, err)
	}
	if err := os.Rename(s.Dir, filepath.Join(dir, asideFolder, s.Name)); err != nil {
		return fmt.Errorf("set stream %s aside: %w", s.Name, err)
	}
	return nil
}

// putBack moves the streams that are set aside to where the server finds them, and returns
// their names. The empty ones that were made in their place go.
func putBack(ctx context.Context, dir string) (names map[string]bool, err error) {
	aside, err := asideStreams(dir)
	if err != nil {
		return nil, err
	}
	names = make(map[string]bool)
	for _, s := range aside {
		at := home(dir, s.Name)
		r, err := blocks.Verify(ctx, blocks.Stream{Account: s.Account, Name: s.Name, Dir: at}, blocks.Options{})
		if err != nil {
			return nil, fmt.Errorf("put stream %s back: %w", s.Name, err)
		}
		if r.Messages > 0 || r.Last > 0 {
			return nil, fmt.Errorf("stream %s was set aside in %s because it is damaged, and messages were stored in the one made in its place: remove one of them, keeping a copy", s.Name, s.Dir)
		}
		if err := os.RemoveAll(at); err != nil {
			return nil, fmt.Errorf("put stream %s back: %w", s.Name, err)
		}
		if err := os.Rename(s.Dir, at); err != nil {
			return nil, fmt.Errorf("put stream %s back: %w", s.Name, err)
		}
		names[s.Name] = true
	}
	return names, nil
}
