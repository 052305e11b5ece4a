package backup

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// RestoreConfig says how to restore.
type RestoreConfig struct {
	Config
	// Replicas of the restored streams. Zero: as many as they had.
	Replicas int
	// Again removes what an earlier restore has left that was cut short.
	Again bool
	// Now is when the restore takes place. Zero: now.
	Now time.Time
}

// ErrOccupied is wrapped by Restore's error if there is an installation already.
var ErrOccupied = errors.New("there is an installation already")

// Restore makes an installation of a backup, on a server that has none of the
// same root, and says what was in it. The file is read twice: it is checked
// whole before anything is written. If it fails later, what is there is refused
// by every node until another Restore, with Again, has seen it through.
func Restore(ctx context.Context, file io.ReadSeeker, cfg RestoreConfig) (*Manifest, error) {
	m, err := Verify(file, nil)
	if err != nil {
		return nil, err
	}
	s, err := subjectsOf(cfg.Root)
	switch {
	case err != nil:
		return nil, err
	case s.Root != m.Root:
		return nil, fmt.Errorf("the backup is of root %q, not %q: subjects hold it and cannot be changed; restore it with --root %s", m.Root, s.Root, m.Root)
	}
	if cfg.Now.IsZero() {
		cfg.Now = time.Now()
	}
	ctx, release := refusals(ctx, cfg.Conn)
	defer release()
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, err
	}
	r := &restoring{RestoreConfig: cfg, js: js, subjects: s, names: natslog.NamesOf(s), m: m}
	if err = denied(ctx, r.insist(ctx, file)); errors.Is(err, ErrLost) {
		err = fmt.Errorf("%w; no node starts on what is there: restore again with --again, which starts over", err)
	}
	return m, err
}

// restoring is one restore.
type restoring struct {
	RestoreConfig
	js       jetstream.JetStream
	subjects messages.Subjects
	names    natslog.Names
	m        *Manifest
	done     int64 // bytes
}

// lingers is how long the server may continue a restore that was cut short,
// and so make a stream after it was removed.
const lingers = 10 * time.Second

// insist restores, and starts over as long as an earlier restore that was cut
// short may come in between.
func (r *restoring) insist(ctx context.Context, file io.ReadSeeker) error {
	every := time.NewTicker(500 * time.Millisecond)
	defer every.Stop()
	for late := time.After(lingers); ; {
		r.done = 0
		_, err := file.Seek(0, io.SeekStart)
		if err == nil {
			err = r.run(ctx, tar.NewReader(file))
		}
		if !r.Again || !exists(err) {
			return err
		}
		select {
		case <-every.C:
		case <-late:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// exists reports whether the server has refused a stream because it is there already.
func exists(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && strings.Contains(refused.Description, "stream name already in use")
}

func (r *restoring) run(ctx context.Context, file *tar.Reader) error {
	if err := r.clear(ctx); err != nil {
		return err
	}
	if err := r.mark(ctx); err != nil {
		return fmt.Errorf("mark that a restore is under way: %w", err)
	}
	if _, err := file.Next(); err != nil {
		return err
	}
	for i, s := range r.m.Streams {
		if err := r.stream(ctx, i, s, &parts{tar: file, stream: s.Name, left: s.Parts}); err != nil {
			return fmt.Errorf("stream %s: %w; the installation is not whole and no node will start on it: restore again with --again, which starts over", s.Name, err)
		}
	}
	if err := r.finish(ctx); err != nil {
		return fmt.Errorf("%w; restore again with --again, which starts over", err)
	}
	if err := natslog.BeginRecords(ctx, r.Conn, r.subjects, r.Replicas, r.m.Taken); err != nil {
		return fmt.Errorf("record what was put back: %w; restore again with --again, which starts over", err)
	}
	if err := r.js.DeleteStream(ctx, r.names.Restoring()); err != nil {
		return fmt.Errorf("say that the restore is done, by removing stream %s: %w", r.names.Restoring(), err)
	}
	return nil
}

// stream restores one stream.
func (r *restoring) stream(ctx context.Context, i int, s Stream, from io.Reader) error {
	cfg, err := r.config(s)
	if err != nil {
		return err
	}
	to, err := begin(ctx, r.Conn, s.Name, cfg, s.State)
	if err != nil {
		return err
	}
	info, err := feed(ctx, r.Conn, to, from, func(n int) {
		if r.done += int64(n); r.Progress != nil {
			r.Progress(Progress{Stream: s.Name, Number: i + 1, Streams: len(r.m.Streams), Bytes: r.done, Done: float64(r.done) / float64(max(1, r.m.Size()))})
		}
	})
	if err != nil {
		return err
	}
	switch last := info.State.LastSeq; {
	case last < s.Last:
		return fmt.Errorf("it ends with sequence %d after the restore, not %d", last, s.Last)
	case last > s.Last && s.Name == r.names.Inbox():
		return r.longer(ctx, s, info)
	}
	return nil
}

// longer keeps the ids of inputs that came while the queue was copied. Servers
// before 2.15 copy them too, and only the restored queue shows that.
func (r *restoring) longer(ctx context.Context, s Stream, info *jetstream.StreamInfo) error {
	s.Last = info.State.LastSeq
	meta, err := r.metadata(s)
	if err != nil {
		return err
	}
	cfg := info.Config
	cfg.Metadata = meta
	_, err = r.js.UpdateStream(ctx, cfg)
	return err
}

// config is the configuration that a stream is restored with.
func (r *restoring) config(s Stream) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(s.Config, &fields); err != nil {
		return nil, fmt.Errorf("its configuration: %w", err)
	}
	meta, err := r.metadata(s)
	if err != nil {
		return nil, err
	}
	set := func(name string, v any) (err error) {
		fields[name], err = json.Marshal(v)
		return err
	}
	err = set("metadata", meta)
	if r.Replicas > 0 {
		err = errors.Join(err, set("num_replicas", r.Replicas))
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// metadata is that of a stream as it is restored: what it was, and of the work
// queue its origins.
func (r *restoring) metadata(s Stream) (map[string]string, error) {
	var cfg jetstream.StreamConfig
	if err := json.Unmarshal(s.Config, &cfg); err != nil {
		return nil, fmt.Errorf("its configuration: %w", err)
	}
	meta := make(map[string]string)
	for name, value := range cfg.Metadata {
		if !strings.HasPrefix(name, "_nats.") { // the server's own
			meta[name] = value
		}
	}
	if isLog(r.names, s.Name) {
		name, value := natslog.Generation()
		meta[name] = value
	}
	if s.Name != r.names.Inbox() {
		return meta, nil
	}
	origins, err := natslog.OriginsOf(s.Created, cfg)
	if err != nil {
		return nil, err
	}
	name, value := origins.Restored(s.Last, r.Now)
	meta[name] = value
	return meta, nil
}

// clear sees that there is room: no living node, and no stream that holds or
// has held anything. Streams that are empty, caches, and what an earlier
// restore has left, if Again allows it, are removed.
func (r *restoring) clear(ctx context.Context) error {
	_, err := r.js.Stream(ctx, r.names.Restoring())
	halved := err == nil
	switch {
	case err != nil && !errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("look up stream %s: %w", r.names.Restoring(), err)
	case halved && !r.Again:
		return errors.New("an earlier restore into this installation was cut short, or is under way elsewhere: if it is not, restore again with --again, which removes what it has left and starts over")
	}
	if err := r.deserted(ctx); err != nil {
		return err
	}
	found, err := r.standing(ctx, halved)
	if err != nil {
		return err
	}
	for _, name := range found {
		if err := r.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("remove stream %s: %w", name, err)
		}
	}
	return nil
}

const (
	// codeNoStore is the server's error for a stream whose folder it cannot make. It
	// removes the folder of all streams behind the last one, and may do so just when it
	// makes the next; so it is asked markTries times, markEvery.
	codeNoStore jetstream.ErrorCode = 10049
	markTries                       = 10
	markEvery                       = 100 * time.Millisecond
)

// mark makes the stream that stands while a restore is under way.
func (r *restoring) mark(ctx context.Context) error {
	every := time.NewTicker(markEvery)
	defer every.Stop()
	for try := 1; ; try++ {
		_, err := r.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: r.names.Restoring(), Description: "reprise: a restore is under way", Subjects: []string{r.subjects.Any("restore")},
			MaxMsgs: 1, Metadata: map[string]string{"reprise-backup": r.m.Begun.Format(time.RFC3339Nano)},
		})
		var refused *jetstream.APIError
		if !errors.As(err, &refused) || refused.ErrorCode != codeNoStore || try == markTries {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// standing are the streams that may be removed; halved says that all may.
func (r *restoring) standing(ctx context.Context, halved bool) (found []string, err error) {
	var full []string
	for _, name := range natslog.StreamNames(r.subjects) {
		stream, err := r.js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up stream %s: %w", name, err)
		}
		if state := stream.CachedInfo().State; state.LastSeq > 0 && !halved && !isCache(r.names, name) {
			full = append(full, fmt.Sprintf("%s with %d messages", name, state.Msgs))
		}
		found = append(found, name)
	}
	if len(full) > 0 {
		return nil, fmt.Errorf("%w: %d of its streams are not empty, such as %s: restore to another server or account, or remove these streams if they are not needed", ErrOccupied, len(full), full[0])
	}
	if halved {
		found = append(found, r.names.Restoring())
	}
	return found, nil
}

// patience is how long the entry of a node that has died may outlive it.
const patience = 6 * time.Second

// deserted sees that no node is alive: its entry among the members expires.
func (r *restoring) deserted(ctx context.Context) error {
	bucket := "KV_" + r.subjects.Root + "_members"
	every := time.NewTicker(250 * time.Millisecond)
	defer every.Stop()
	for late := time.After(patience); ; {
		stream, err := r.js.Stream(ctx, bucket)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look up stream %s: %w", bucket, err)
		}
		if stream.CachedInfo().State.Msgs == 0 {
			return nil
		}
		select {
		case <-every.C:
		case <-late:
			return fmt.Errorf("%w: nodes are alive there: stop them, and start them when the restore is done", ErrOccupied)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
