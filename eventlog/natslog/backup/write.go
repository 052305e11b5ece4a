package backup

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// Config says what to copy from or to.
type Config struct {
	// Conn is made by natslog.Connect or the embedded server. Its error handler
	// is replaced while it is used.
	Conn *nats.Conn
	// Root is the first token of the installation's subjects. Empty: reprise.
	Root string
	// Version is written into the file.
	Version string
	// Taken is what was taken out of the log's streams, beside what is on record of them.
	Taken natslog.Recorded
	// Progress, if given, is called now and then with how far it has come, from one
	// goroutine.
	Progress func(Progress)
}

// Progress is how far a backup or a restore has come.
type Progress struct {
	// Stream is the one under way, number Number of Streams.
	Stream          string
	Number, Streams int
	// Bytes are those of the file that are done.
	Bytes int64
	// Done is the part of all work that is done, from 0 to 1. Of a backup it is an
	// estimate.
	Done float64
}

// partSize is how much of a stream is one entry of the archive, and so how much
// of it is held in memory.
const partSize = 4 << 20

// Write writes a backup of the running installation to w and says what is in
// it. After an error what was written is no backup: it has no end.
func Write(ctx context.Context, w io.Writer, cfg Config) (*Manifest, error) {
	s, err := subjectsOf(cfg.Root)
	if err != nil {
		return nil, err
	}
	ctx, release := refusals(ctx, cfg.Conn)
	defer release()
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, err
	}
	infos, err := present(ctx, js, s)
	if err != nil {
		return nil, denied(ctx, err)
	}
	taken, err := natslog.Whole(ctx, cfg.Conn, s)
	if err != nil {
		return nil, denied(ctx, err)
	}
	for stream, places := range cfg.Taken {
		taken[stream] = append(taken[stream], places...)
	}
	m := &Manifest{Format: format, Version: cfg.Version, Root: s.Root, Begun: time.Now().UTC(), Taken: taken}
	out := &writer{tar: tar.NewWriter(w), at: m.Begun}
	if err := out.json(entryHead, m); err != nil {
		return nil, err
	}
	watch := watcher{cfg: cfg, total: rawBytes(infos), streams: len(infos)}
	for i, info := range infos {
		stream, err := out.stream(ctx, cfg.Conn, info, watch.at(i, info))
		if err != nil {
			return nil, denied(ctx, fmt.Errorf("stream %s: %w", info.Config.Name, err))
		}
		m.Streams = append(m.Streams, *stream)
		watch.raw += info.State.Bytes
	}
	if err := m.addGone(ctx, js, s, infos); err != nil {
		return nil, denied(ctx, fmt.Errorf("look for agents that were deleted meanwhile: %w", err))
	}
	m.Ended = time.Now().UTC()
	return m, out.end(m)
}

// present looks the streams up that a backup takes, in order. One that an
// earlier version did not have may be missing.
func present(ctx context.Context, js jetstream.JetStream, s messages.Subjects) ([]*jetstream.StreamInfo, error) {
	restoring := natslog.NamesOf(s).Restoring()
	switch _, err := js.Stream(ctx, restoring); {
	case err == nil:
		return nil, natslog.ErrRestoring
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("look up stream %s: %w", restoring, err)
	}
	var infos []*jetstream.StreamInfo
	for _, name := range streams(s) {
		stream, err := js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) && !essential(natslog.NamesOf(s), name) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("stream %s of root %q: %w: is this the server of an installation?", name, s.Root, err)
		}
		infos = append(infos, stream.CachedInfo())
	}
	return infos, nil
}

func rawBytes(infos []*jetstream.StreamInfo) (n uint64) {
	for _, info := range infos {
		n += info.State.Bytes
	}
	return n
}

// watcher reports how far a backup has come.
type watcher struct {
	cfg     Config
	streams int
	total   uint64 // of all streams, as they are stored
	raw     uint64 // of those that are done
	file    int64  // what has been written
}

// at returns a function to call with how many bytes of a stream were written.
func (w *watcher) at(i int, info *jetstream.StreamInfo) func(int) {
	mine := uint64(0)
	return func(n int) {
		mine, w.file = mine+uint64(n), w.file+int64(n)
		if w.cfg.Progress == nil {
			return
		}
		p := Progress{Stream: info.Config.Name, Number: i + 1, Streams: w.streams, Bytes: w.file}
		if w.total > 0 {
			p.Done = min(1, float64(w.raw+min(mine, info.State.Bytes))/float64(w.total))
		}
		w.cfg.Progress(p)
	}
}

// writer writes the archive.
type writer struct {
	tar *tar.Writer
	at  time.Time
}

func (w *writer) entry(name string, data []byte) error {
	err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), ModTime: w.at.Truncate(time.Second), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = w.tar.Write(data)
	}
	if err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

func (w *writer) json(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return w.entry(name, append(b, '\n'))
}

// stream copies one stream from the server.
func (w *writer) stream(ctx context.Context, nc *nats.Conn, info *jetstream.StreamInfo, told func(int)) (*Stream, error) {
	s := &Stream{Name: info.Config.Name, Created: info.Created}
	sum, buf := sha256.New(), make([]byte, 0, partSize)
	flush := func() error {
		if len(buf) == 0 {
			return nil
		}
		s.Parts, s.Size = s.Parts+1, s.Size+int64(len(buf))
		err := w.entry(partName(s.Name, s.Parts), buf)
		buf = buf[:0]
		return err
	}
	shot, err := snapshot(ctx, nc, s.Name, func(chunk []byte) error {
		_, _ = sum.Write(chunk) // a hash takes everything
		told(len(chunk))
		for len(chunk) > 0 {
			n := min(len(chunk), cap(buf)-len(buf))
			buf, chunk = append(buf, chunk[:n]...), chunk[n:]
			if len(buf) == cap(buf) {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.SHA256, s.Config, s.State = hex.EncodeToString(sum.Sum(nil)), shot.Config, shot.State
	var state jetstream.StreamState
	if err := json.Unmarshal(shot.State, &state); err != nil {
		return nil, fmt.Errorf("the server's answer: %w", err)
	}
	s.Messages, s.Bytes, s.First, s.Last = state.Msgs, state.Bytes, state.FirstSeq, state.LastSeq
	return s, flush()
}

// end writes the manifest, by which a reader knows that the file is whole.
func (w *writer) end(m *Manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if err := w.entry(entryManifest, b); err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	if err := w.entry(entryDigest, []byte(hex.EncodeToString(sum[:])+"\n")); err != nil {
		return err
	}
	if err := w.tar.Close(); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}
