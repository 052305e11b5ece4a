package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
)

// ErrDamaged is wrapped by the error for a file that is no whole backup.
var ErrDamaged = errors.New("the file is no whole backup")

// damaged says what is wrong with a file.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s: use another copy", ErrDamaged, fmt.Sprintf(format, args...))
}

// unread says why something in a file could not be read.
func unread(what string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("it is cut short: it ends within %s", what)
	}
	return damaged("%s: %v", what, err)
}

// maxManifest bounds what is read of a manifest, in bytes.
const maxManifest = 16 << 20

// Verify reads a backup to its end, checks that it is whole, and says what is
// in it. told, if given, is called with how many bytes were read.
func Verify(r io.Reader, told func(n int)) (*Manifest, error) {
	r = &counter{r, told}
	v := &verifier{tar: tar.NewReader(r), streams: make(map[string]*sum)}
	head, err := v.head()
	if err != nil {
		return nil, err
	}
	for {
		h, err := v.tar.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, damaged("it is cut short: it has no end")
		case err != nil:
			return nil, unread("the archive", err)
		case h.Name == entryManifest:
			m, err := v.manifest()
			if err != nil {
				return nil, err
			}
			if m.Format != head.Format || m.Root != head.Root || !m.Begun.Equal(head.Begun) {
				return nil, damaged("its beginning and its end are of different backups")
			}
			if err := v.over(r); err != nil {
				return nil, err
			}
			return m, nil
		}
		if err := v.part(h.Name); err != nil {
			return nil, err
		}
	}
}

// verifier sums up what a file holds.
type verifier struct {
	tar     *tar.Reader
	streams map[string]*sum
}

// sum is what was found of one stream.
type sum struct {
	hash  hash.Hash
	parts int
	size  int64
}

// head reads the first entry, by which a backup is known.
func (v *verifier) head() (*Manifest, error) {
	h, err := v.tar.Next()
	if err != nil || h.Name != entryHead {
		return nil, fmt.Errorf("%w: it does not begin as a backup of reprise does", ErrDamaged)
	}
	m := new(Manifest)
	if err := json.NewDecoder(io.LimitReader(v.tar, maxManifest)).Decode(m); err != nil {
		return nil, damaged("%s: %v", entryHead, err)
	}
	if m.Format < 1 || m.Format > format {
		return nil, fmt.Errorf("the backup has format %d, written by %q; this version reads up to format %d: use the version that wrote it, or a later one", m.Format, m.Version, format)
	}
	return m, nil
}

// part reads one part of a stream.
func (v *verifier) part(name string) error {
	stream := path.Dir(name)
	s := v.streams[stream]
	if s == nil {
		s = &sum{hash: sha256.New()}
		v.streams[stream] = s
	}
	if s.parts++; name != partName(stream, s.parts) {
		return damaged("%q stands where part %d of stream %s should", name, s.parts, stream)
	}
	n, err := io.Copy(s.hash, v.tar)
	if err != nil {
		return unread(name, err)
	}
	s.size += n
	return nil
}

func partName(stream string, n int) string { return path.Join(stream, fmt.Sprintf("%06d", n)) }

// manifest reads the end and compares it with what was found.
func (v *verifier) manifest() (*Manifest, error) {
	b, err := io.ReadAll(io.LimitReader(v.tar, maxManifest))
	if err != nil {
		return nil, unread(entryManifest, err)
	}
	h, err := v.tar.Next()
	if err != nil || h.Name != entryDigest {
		return nil, damaged("it is cut short: it has no %s", entryDigest)
	}
	want, err := io.ReadAll(io.LimitReader(v.tar, 1<<10))
	if err != nil {
		return nil, unread(entryDigest, err)
	}
	if got := sha256.Sum256(b); string(bytes.TrimSpace(want)) != hex.EncodeToString(got[:]) {
		return nil, damaged("%s does not match its digest", entryManifest)
	}
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, damaged("%s: %v", entryManifest, err)
	}
	for _, s := range m.Streams {
		got := v.streams[s.Name]
		if got == nil {
			got = &sum{hash: sha256.New()}
		}
		delete(v.streams, s.Name)
		if got.parts != s.Parts || got.size != s.Size || hex.EncodeToString(got.hash.Sum(nil)) != s.SHA256 {
			return nil, damaged("stream %s has %d bytes in %d parts that do not match its digest (want %d bytes in %d parts)", s.Name, got.size, got.parts, s.Size, s.Parts)
		}
	}
	for name := range v.streams {
		return nil, damaged("it holds %q, which its end does not name", name)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("the backup cannot be used: %w", err)
	}
	return m, nil
}

// over sees that nothing but padding follows the end.
func (v *verifier) over(r io.Reader) error {
	switch h, err := v.tar.Next(); {
	case err == nil:
		return damaged("it has data behind its end, with %q", h.Name)
	case !errors.Is(err, io.EOF):
		return damaged("it has data behind its end: %v", err)
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return damaged("it has data behind its end")
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return unread("what follows its end", err)
		}
	}
}

// counter counts what is read through it.
type counter struct {
	r    io.Reader
	told func(int)
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if c.told != nil {
		c.told(n)
	}
	return n, err
}

// parts reads the parts of one stream as one, and the archive past them.
type parts struct {
	tar    *tar.Reader
	stream string
	left   int // parts not yet begun
	n      int
	in     bool
}

// Read reads on, through the end of one part into the next.
func (p *parts) Read(b []byte) (int, error) {
	for {
		if p.in {
			n, err := p.tar.Read(b)
			if n > 0 || err != nil && !errors.Is(err, io.EOF) {
				return n, ignoreEOF(err)
			}
			p.in = false
		}
		if p.left == 0 {
			return 0, io.EOF
		}
		h, err := p.tar.Next()
		if p.n++; err != nil || h.Name != partName(p.stream, p.n) {
			return 0, damaged("it has changed since it was checked: part %d of stream %s is not there (%v)", p.n, p.stream, err)
		}
		p.left, p.in = p.left-1, true
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
