package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/eventlog/encrypted"
	"github.com/reprise-dev/reprise/eventlog/natslog"
	"github.com/reprise-dev/reprise/messages"
)

// keysFile is what a copy of the keys begins with.
const keysFile = "reprise keys"

// Keys says what is in a copy of the agents' keys. Its JSON form is the first line
// of the file, but for what is known at its end.
type Keys struct {
	File    string    `json:"file"`
	Format  int       `json:"format"`
	Version string    `json:"version,omitempty"` // of the program that wrote it
	Root    string    `json:"root"`
	Store   string    `json:"store"` // the name that the store got when it was first encrypted
	Begun   time.Time `json:"begun"`
	// Marks are of the store's wrapping keys, which are not in the file.
	Marks []encrypted.Mark `json:"marks"`

	// Keys is how many agents' keys are in it, LeftOut how many were not copied since
	// nothing of the agent's present life is encrypted with them.
	Keys    int `json:"-"`
	LeftOut int `json:"-"`
}

// keysEnd is the line behind the keys. Behind it is one with the SHA-256 of all
// lines before, hex.
type keysEnd struct {
	Keys    int `json:"keys"`
	LeftOut int `json:"left_out"`
}

func sumLine(sum hash.Hash) string { return fmt.Sprintf(`{"sha256":"%x"}`, sum.Sum(nil)) }

// ErrPlain is wrapped by the errors for the keys of a store that was never encrypted.
var ErrPlain = errors.New("the store was never encrypted: it has no keys")

// vault is an installation with its keys.
type vault struct {
	log      *natslog.Log
	bucket   *natslog.Bucket // nil: it is missing
	name     string
	replicas int
}

// unlock opens the installation and the bucket of its keys.
func unlock(ctx context.Context, cfg Config) (v vault, err error) {
	s, err := subjectsOf(cfg.Root)
	if err != nil {
		return v, err
	}
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return v, err
	}
	if _, err := js.Stream(ctx, natslog.NamesOf(s).Definitions()); err != nil { // Open would make it
		return v, fmt.Errorf("stream %s of root %q: %w: is this the server of an installation?", natslog.NamesOf(s).Definitions(), s.Root, err)
	}
	if v.log, err = natslog.Open(ctx, natslog.Config{Conns: []*nats.Conn{cfg.Conn}, Subjects: s, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return v, err
	}
	if v.name, v.replicas, err = v.log.Encryption(ctx); err != nil {
		return v, err
	}
	if v.bucket, err = v.log.FindKeys(ctx); err == nil && v.name == "" {
		err = ErrPlain
	}
	return v, err
}

// WriteKeys writes a copy of the keys of all agents to w, while nodes run, and says
// what is in it. They are wrapped: without the wrapping key, which is not in it, it
// is worth nothing. Of a deleted agent there is none in it. After an error what was
// written is no copy: it has no end.
func WriteKeys(ctx context.Context, w io.Writer, cfg Config) (*Keys, error) {
	ctx, release := refusals(ctx, cfg.Conn)
	defer release()
	m, err := writeKeys(ctx, w, cfg)
	return m, denied(ctx, err)
}

func writeKeys(ctx context.Context, w io.Writer, cfg Config) (*Keys, error) {
	v, err := unlock(ctx, cfg)
	if err == nil && v.bucket == nil {
		err = fmt.Errorf("the stream %s, which holds the keys, is missing: put it back from a copy, with restore --keys", keysOf(cfg.Root))
	}
	if err != nil {
		return nil, err
	}
	m := &Keys{File: keysFile, Format: format, Version: cfg.Version, Root: rootOf(cfg.Root), Store: v.name, Begun: time.Now().UTC()}
	if m.Marks, err = encrypted.Marks(ctx, v.bucket); err == nil && len(m.Marks) == 0 {
		err = errors.New("the bucket of the keys records no wrapping key: start a node with that of the store, then copy")
	}
	if err != nil {
		return nil, err
	}
	agents, err := encrypted.Agents(ctx, v.bucket)
	if err != nil {
		return nil, err
	}
	out := &keysWriter{to: bufio.NewWriter(w), sum: sha256.New()}
	if err := out.line(m); err != nil {
		return nil, err
	}
	for i, a := range agents {
		if err := m.copy(ctx, out, v, a); err != nil {
			return nil, err
		}
		cfg.tell(keysOf(cfg.Root), i+1, len(agents))
	}
	if err := out.line(keysEnd{m.Keys, m.LeftOut}); err != nil {
		return nil, err
	}
	_, _ = out.to.WriteString(sumLine(out.sum) + "\n") // Flush says what is wrong
	return m, out.to.Flush()
}

// copy writes the key of one agent, if the agent needs it.
func (m *Keys) copy(ctx context.Context, out *keysWriter, v vault, a messages.AgentID) error {
	key, revision, err := encrypted.Copy(ctx, v.bucket, a)
	switch {
	case err != nil && revision != 0: // a copy without it would take the place of one that has it
		return fmt.Errorf("%w; put it back from your last copy (restore --keys) or delete the agent, then copy again", err)
	case err != nil || revision == 0: // it was deleted just now
		return err
	}
	id, err := v.log.EncryptedBy(ctx, a)
	var damage *eventlog.DamageError
	switch {
	case errors.As(err, &damage): // whether it was deleted is decided when it is put back
	case err != nil:
		return err
	case id != key.ID:
		m.LeftOut++
		return nil
	}
	m.Keys++
	return out.line(key)
}

// tell reports how far work on keys has come.
func (c Config) tell(stream string, done, all int) {
	if c.Progress != nil {
		c.Progress(Progress{Stream: stream, Number: 1, Streams: 1, Done: float64(done) / float64(max(1, all))})
	}
}

func rootOf(root string) string {
	if root == "" {
		return messages.DefaultRoot
	}
	return root
}

func keysOf(root string) string { return natslog.KeysOf(messages.Subjects{Root: root}) }

// keysWriter writes lines of JSON.
type keysWriter struct {
	to  *bufio.Writer
	sum hash.Hash
}

func (w *keysWriter) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	_, _ = w.sum.Write(b) // a hash takes everything
	if _, err := w.to.Write(b); err != nil {
		return fmt.Errorf("write the keys: %w", err)
	}
	return nil
}

// mostLine bounds a line of the file, in bytes.
const mostLine = 1 << 20

// VerifyKeys reads a copy of the keys to its end, checks that it is whole, and says
// what is in it.
func VerifyKeys(r io.Reader) (*Keys, error) {
	return readKeys(r, func(encrypted.Copied) error { return nil })
}

// readKeys calls each with each key of a copy, and then checks that it is whole.
func readKeys(r io.Reader, each func(encrypted.Copied) error) (*Keys, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostLine)
	m, err := keysHead(lines)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	add(sum, lines)
	for n := 2; lines.Scan(); n++ {
		add(sum, lines)
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"keys":`)) {
			return m, m.end(lines, sum)
		}
		var key encrypted.Copied
		err := json.Unmarshal(lines.Bytes(), &key)
		if err == nil {
			_, err = key.Of()
		}
		if err != nil {
			return nil, damagedKeys("line %d: %v", n, err)
		}
		if err := each(key); err != nil {
			return nil, err
		}
		m.Keys++
	}
	if err := lines.Err(); err != nil {
		return nil, damagedKeys("%v", err)
	}
	return nil, damagedKeys("it is cut short: it has no end")
}

// add adds a line to the sum, which is of lines that end.
func add(sum hash.Hash, lines *bufio.Scanner) {
	_, _ = sum.Write(lines.Bytes()) // a hash takes everything
	_, _ = sum.Write([]byte{'\n'})
}

// ErrNoKeys is wrapped by the error for a file that is no whole copy of keys.
var ErrNoKeys = errors.New("the file is no whole copy of keys")

func damagedKeys(what string, args ...any) error {
	return fmt.Errorf("%w: %s: use another copy", ErrNoKeys, fmt.Sprintf(what, args...))
}

func keysHead(lines *bufio.Scanner) (*Keys, error) {
	m := new(Keys)
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), m) != nil || m.File != keysFile {
		return nil, fmt.Errorf("%w: it does not begin as one that `reprise backup --keys` makes", ErrNoKeys)
	}
	if m.Format > format {
		return nil, fmt.Errorf("the copy has format %d and this version reads up to %d: use the version that wrote it (%s), or a later one", m.Format, format, m.Version)
	}
	return m, nil
}

// end holds the last lines against what was read.
func (m *Keys) end(lines *bufio.Scanner, sum hash.Hash) error {
	var end keysEnd
	err := json.Unmarshal(lines.Bytes(), &end)
	switch {
	case err != nil:
		return damagedKeys("its last line but one: %v", err)
	case !lines.Scan():
		return damagedKeys("it is cut short: its last line is missing")
	case end.Keys != m.Keys || lines.Text() != sumLine(sum):
		return damagedKeys("its lines are not those that were written")
	case lines.Scan():
		return damagedKeys("it has data behind its end")
	}
	m.LeftOut = end.LeftOut
	return nil
}

// KeysConfig says how to put keys back.
type KeysConfig struct {
	Config
	// Wrapping, if given, are wrapping keys to try the keys with, the store's newest
	// first; keys that an older one has wrapped are wrapped again by it.
	Wrapping []encrypted.Key
	// Told, if given, is called for each key that could not be put back, and why.
	Told func(agent string, why error)
}

// KeysRestored says what became of the keys in a copy.
type KeysRestored struct {
	Back   int `json:"back"`   // put back
	There  int `json:"there"`  // there already
	Other  int `json:"other"`  // the agent has another key by now
	Unused int `json:"unused"` // the agent is deleted, made again or not in the store
	Failed int `json:"failed"` // could not be decided or opened
}

// RestoreKeys puts keys back that were copied from this store, or from the one
// that it was restored from, while nodes run. It makes the bucket if it is missing.
// The file is read twice: it is checked whole before anything is written.
//
// A key comes back only where the agent's present life is encrypted with it and no
// other key is there: what was deleted stays unreadable. It takes the place of one
// that is damaged.
func RestoreKeys(ctx context.Context, file io.ReadSeeker, cfg KeysConfig) (*Keys, KeysRestored, error) {
	var done KeysRestored
	m, err := VerifyKeys(file)
	if err != nil {
		return nil, done, err
	}
	ctx, release := refusals(ctx, cfg.Conn)
	defer release()
	if err = cfg.fits(ctx, m); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = cfg.restore(ctx, file, m, &done)
	}
	return m, done, denied(ctx, err)
}

// fits returns an error unless the copy is of this store.
func (cfg KeysConfig) fits(ctx context.Context, m *Keys) error {
	if root := rootOf(cfg.Root); root != m.Root {
		return fmt.Errorf("the keys are of root %q, not %q: use --root %s, or the copy of this one", m.Root, root, m.Root)
	}
	v, err := unlock(ctx, cfg.Config)
	if err == nil && v.name != m.Store {
		err = fmt.Errorf("the keys are of another store: it is named %s, this one %s: use the copy of this one", m.Store, v.name)
	}
	if err == nil && len(cfg.Wrapping) > 0 { // before a bucket is made, which would take any
		err = encrypted.Fits(m.Marks, cfg.Wrapping...)
	}
	return err
}

func (cfg KeysConfig) restore(ctx context.Context, file io.Reader, m *Keys, done *KeysRestored) error {
	v, err := unlock(ctx, cfg.Config)
	if err == nil && v.bucket == nil {
		v.bucket, err = v.log.MakeKeys(ctx, v.replicas)
	}
	if err != nil {
		return err
	}
	to, err := encrypted.PutBack(ctx, v.bucket, m.Marks, cfg.Wrapping...)
	if err != nil {
		return err
	}
	n := 0
	_, err = readKeys(file, func(c encrypted.Copied) error {
		became, err := v.put(ctx, to, c)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			if done.Failed++; cfg.Told != nil {
				cfg.Told(c.Agent, err)
			}
		} else {
			*done.of(became)++
		}
		n++
		cfg.tell(keysOf(cfg.Root), n, m.Keys)
		return nil
	})
	return err
}

// put puts one key back.
func (v vault) put(ctx context.Context, to *encrypted.Putter, c encrypted.Copied) (encrypted.Put, error) {
	a, err := c.Of()
	if err != nil {
		return 0, err
	}
	return to.Put(ctx, c, func(ctx context.Context) (bool, error) {
		id, err := v.log.EncryptedBy(ctx, a)
		return id == c.ID, err
	})
}

// of is the number that counts what became of a key.
func (r *KeysRestored) of(became encrypted.Put) *int {
	switch became {
	case encrypted.Restored:
		return &r.Back
	case encrypted.Present:
		return &r.There
	case encrypted.Replaced:
		return &r.Other
	}
	return &r.Unused
}
