package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/eventlog/natslog/embedded/blocks"
	"github.com/reprise-dev/reprise/messages"
)

// Quarantined says what was taken out of a stream because it could not be read.
type Quarantined struct {
	ID     string    `json:"id"`
	Stream string    `json:"stream"`
	At     time.Time `json:"at"`
	Places []Place   `json:"places"`
	// Folder holds the files as they were.
	Folder string `json:"-"`
	// Err is why nothing was taken out. Nil: it was.
	Err error `json:"-"`
}

// A folder of the quarantine holds the files as they were, and what was done: in
// reportFile until a node has put it on record, in recordedFile since.
const (
	quarantineFolder = "quarantine"
	reportFile       = "report.json"
	recordedFile     = "recorded.json"
)

// Quarantine takes what the server cannot read out of the files of a server that does not run,
// and keeps a copy of each file that it changes. In the place of a bad record is then one
// that the server takes for deleted, so that the stream can be opened and no sequence is
// used again. each receives what was done to each damaged stream of the folder; progress,
// unless it is nil, how many bytes are read. A node that starts on the folder records what
// is missing; see [Server.Quarantined].
func Quarantine(ctx context.Context, dir, root string, each func(Quarantined), progress func(stream string, done, total int64)) error {
	streams, lock, err := openIdle(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	x := examination{subjects: messages.Subjects{Root: root}, progress: progress}
	_, x.killed = wasOpen(dir)
	return x.each(ctx, streams, func(s blocks.Stream) error {
		report, err := x.verify(ctx, s)
		if err != nil || len(report.Damage) == 0 {
			return err
		}
		q := Quarantined{ID: ulid.Make().String(), Stream: s.Name, At: time.Now().UTC(), Places: x.places(report.Damage)}
		q.Folder = filepath.Join(dir, quarantineFolder, s.Name+"-"+q.ID)
		q.Err = quarantine(s, report.Damage, q)
		each(q)
		return nil
	})
}

// quarantine writes down what it will take out before it does.
func quarantine(s blocks.Stream, damage []blocks.Damage, q Quarantined) error {
	if slices.ContainsFunc(damage, func(d blocks.Damage) bool { return d.Block == 0 }) {
		return fmt.Errorf("stream %s: what is damaged is not in a block of messages, and cannot be taken out: copy what can be read with --salvage, or restore a backup", s.Name)
	}
	data, err := json.MarshalIndent(q, "", "  ")
	if err == nil {
		err = os.MkdirAll(q.Folder, 0o700)
	}
	report := filepath.Join(q.Folder, reportFile)
	if err == nil {
		err = blocks.WriteWhole(report, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", s.Name, err)
	}
	return blocks.Quarantine(s, damage, q.Folder)
}

// Quarantined returns what was taken out of the server's streams and is not on record yet,
// oldest first.
func (s *Server) Quarantined() (all []Quarantined, err error) { return unrecorded(s.cfg.Dir) }

// unrecorded returns the reports in a data folder of what no node has put on record.
func unrecorded(dir string) (all []Quarantined, err error) {
	dir = filepath.Join(dir, quarantineFolder)
	folders, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list what was taken out of the store: %w", err)
	}
	for _, folder := range folders {
		q := Quarantined{Folder: filepath.Join(dir, folder.Name())}
		path := filepath.Join(q.Folder, reportFile)
		data, err := os.ReadFile(path)
		if !folder.IsDir() || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(data, &q)
		}
		if err != nil {
			return nil, fmt.Errorf("%s lists what was taken out of the store, and cannot be read: %w; restore it, or remove it: then what is missing counts as lost", path, err)
		}
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b Quarantined) int { return a.At.Compare(b.At) })
	return all, nil
}

// Recorded notes that what was taken out is on record.
func (s *Server) Recorded(q Quarantined) error {
	err := os.Rename(filepath.Join(q.Folder, reportFile), filepath.Join(q.Folder, recordedFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("note that what was taken out of stream %s is on record: %w", q.Stream, err)
	}
	return nil
}

// Record returns what was taken out of a stream of the log, as it is put on record. Where
// several messages were, some may have been of other agents than the one that can be read.
func (q Quarantined) Record() (all []natslog.Quarantined) {
	for _, p := range q.Places {
		taken := natslog.Quarantined{ID: q.ID, First: p.First, Last: p.Last}
		if p.First == p.Last {
			taken.Agent = p.Agent
		}
		if p.Last > 0 {
			all = append(all, taken)
		}
	}
	return all
}
