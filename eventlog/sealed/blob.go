package sealed

import (
	"context"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// A sealed blob is the 8 bytes of its key's id, 16 bytes that name its own key
// among those derived from that one, and segments of 64 KiB, each sealed by
// itself. The nonce of a segment is its number and whether it is the last.
const (
	segment  = 64 << 10
	tag      = 16
	saltSize = 16
	headSize = idSize + saltSize
)

// sealedSize is how large a blob of so many bytes is once it is sealed.
func sealedSize(size int64) int64 {
	segments := max(1, (size+segment-1)/segment)
	return headSize + size + segments*tag
}

// PutBlob seals what r holds and stores it; see eventlog.Blobs. The blob is named
// by what r holds, and Stored names what is kept.
func (l *Log) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	if err := l.closed(); err != nil {
		return messages.Blob{}, err
	}
	if l.keys == nil {
		return l.Log.PutBlob(ctx, a, r)
	}
	key, err := l.keys.writing(ctx, a)
	if err != nil {
		return messages.Blob{}, err
	}
	begin, h := int64(0), sha256.New()
	size, err := io.Copy(h, r)
	if err == nil {
		begin, err = r.Seek(-size, io.SeekCurrent)
	}
	if err != nil {
		return messages.Blob{}, err
	}
	sum := h.Sum(nil)
	sealer, err := newBlobSealer(key, a, sum, r, begin)
	if err != nil {
		return messages.Blob{}, err
	}
	stored, err := l.Log.PutBlob(ctx, a, sealer)
	return messages.Blob{SHA256: messages.Digest(hex.EncodeToString(sum)), Size: size, Stored: stored.SHA256}, err
}

// Blob streams a blob, opened; see eventlog.Blobs.
func (l *Log) Blob(ctx context.Context, a messages.AgentID, b messages.Blob) (io.ReadCloser, error) {
	if b.Stored == "" {
		return l.Log.Blob(ctx, a, b)
	}
	if l.keys == nil {
		return nil, messages.Refuse(messages.Damaged, "blob %s of %s cannot be read: %v", b.SHA256, a, ErrOff)
	}
	r, err := l.Log.Blob(ctx, a, messages.Blob{SHA256: b.Stored, Size: sealedSize(b.Size)})
	if err != nil {
		return nil, err
	}
	o := &blobOpener{from: r, blob: b, agent: a, sum: sha256.New()}
	if err := o.begin(ctx, l.keys); err != nil {
		_ = r.Close()
		return nil, err
	}
	return o, nil
}

// blobKey is the key of one blob, bound to its agent.
func blobKey(k *dataKey, a messages.AgentID, salt []byte) cipher.AEAD {
	return newGCM(derive(k.secret, "blob "+a.Full()+" "+hex.EncodeToString(salt), 32))
}

func segmentNonce(n uint64, last bool) []byte {
	nonce := make([]byte, 12)
	binary.BigEndian.PutUint64(nonce[3:], n)
	if last {
		nonce[11] = 1
	}
	return nonce
}

// blobSealer reads as the sealed form of what it is made of, from the beginning
// as often as is wanted.
type blobSealer struct {
	from  io.ReadSeeker
	begin int64 // where from began
	at    int64
	head  []byte
	key   cipher.AEAD
	out   []byte // sealed and not read yet
	plain []byte
	ahead []byte // the beginning of the next segment: whether there is one
	n     uint64
	done  bool
}

func newBlobSealer(k *dataKey, a messages.AgentID, sum []byte, from io.ReadSeeker, begin int64) (*blobSealer, error) {
	id, err := hex.DecodeString(k.id)
	if err != nil {
		return nil, err
	}
	salt := k.mac([]byte(a.Full()), []byte("blob"), sum)[:saltSize]
	s := &blobSealer{from: from, begin: begin, head: append(id, salt...), key: blobKey(k, a, salt), plain: make([]byte, segment+1)}
	_, err = s.Seek(0, io.SeekStart)
	return s, err
}

var errSeek = errors.New("a sealed blob is read from its beginning")

// Seek goes back to the beginning, and nowhere else.
func (s *blobSealer) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekCurrent {
		offset += s.at
	}
	if offset != 0 || whence == io.SeekEnd {
		return 0, errSeek
	}
	s.out, s.ahead, s.n, s.at, s.done = append([]byte(nil), s.head...), nil, 0, 0, false
	_, err := s.from.Seek(s.begin, io.SeekStart)
	return 0, err
}

// Read gives the next sealed bytes.
func (s *blobSealer) Read(p []byte) (int, error) {
	for len(s.out) == 0 {
		if s.done {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.out)
	s.out, s.at = s.out[n:], s.at+int64(n)
	return n, nil
}

// next seals the next segment. It reads one byte more, to know whether it is the
// last.
func (s *blobSealer) next() error {
	have := copy(s.plain, s.ahead)
	n, err := io.ReadFull(s.from, s.plain[have:])
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		s.done = true
	case err != nil:
		return err
	}
	whole := s.plain[:have+n]
	if !s.done {
		whole = s.plain[:segment]
	}
	s.out = s.key.Seal(s.out[:0], segmentNonce(s.n, s.done), whole, nil)
	s.n++
	if !s.done {
		s.ahead = append(s.ahead[:0], s.plain[segment])
	}
	return nil
}

// blobOpener reads as what a sealed blob was made of.
type blobOpener struct {
	from   io.ReadCloser
	blob   messages.Blob
	agent  messages.AgentID
	key    cipher.AEAD
	sum    hash.Hash
	read   int64
	sealed []byte
	plain  []byte // opened and not read yet
	n      uint64
	done   bool
	// skipped says that sum does not tell of all bytes.
	skipped bool
}

func (o *blobOpener) damaged(why string) error {
	return messages.Refuse(messages.Damaged, "blob %s of %s cannot be read: %s", o.blob.SHA256, o.agent, why)
}

func (o *blobOpener) begin(ctx context.Context, keys *Keys) error {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(o.from, head); err != nil {
		return o.broken(err)
	}
	key, err := keys.reading(ctx, o.agent, hex.EncodeToString(head[:idSize]))
	switch {
	case errors.Is(err, ErrNoKey):
		return o.damaged(err.Error())
	case err != nil:
		return err
	}
	o.key, o.sealed = blobKey(key, o.agent, head[idSize:]), make([]byte, segment+tag)
	return nil
}

// broken is the error of a stream that ended too soon.
func (o *blobOpener) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return o.damaged("it is cut off")
	}
	return err
}

// Read gives the next bytes. At the end the whole is held against its hash.
func (o *blobOpener) Read(p []byte) (int, error) {
	for len(o.plain) == 0 {
		if o.done {
			return 0, o.end()
		}
		if err := o.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, o.plain)
	o.sum.Write(o.plain[:n])
	o.plain, o.read = o.plain[n:], o.read+int64(n)
	return n, nil
}

func (o *blobOpener) next() error {
	left := o.blob.Size - int64(o.n)*segment
	o.done = left <= segment
	sealed := o.sealed[:min(left, segment)+tag]
	if _, err := io.ReadFull(o.from, sealed); err != nil {
		return o.broken(err)
	}
	plain, err := o.key.Open(sealed[:0], segmentNonce(o.n, o.done), sealed, nil)
	if err != nil {
		return o.damaged(fmt.Sprintf("segment %d was changed", o.n))
	}
	o.plain = plain
	o.n++
	return nil
}

// Skip goes on n bytes further, from the beginning of the segment that they end
// in; see eventlog.Skipper.
func (o *blobOpener) Skip(n int64) error {
	if n <= int64(len(o.plain)) {
		o.pass(n)
		return nil
	}
	at := o.read + n
	if at > o.blob.Size {
		return io.ErrUnexpectedEOF
	}
	to := uint64(min(at, o.blob.Size-1) / segment) // the last segment is never empty here
	if to > o.n {
		if err := eventlog.Skip(o.from, int64(to-o.n)*(segment+tag)); err != nil {
			return o.broken(err)
		}
		o.n = to
	}
	o.plain, o.read, o.skipped = nil, int64(o.n)*segment, true
	if at == o.read {
		return nil
	}
	if err := o.next(); err != nil {
		return err
	}
	o.pass(at - o.read)
	return nil
}

// pass takes n bytes of what is opened as read.
func (o *blobOpener) pass(n int64) {
	o.skipped = o.skipped || n > 0
	o.plain, o.read = o.plain[n:], o.read+n
}

// end reads on to the end of what is stored, where its own hash is checked.
func (o *blobOpener) end() error {
	rest, err := io.Copy(io.Discard, o.from)
	switch {
	case err != nil:
		return err
	case rest > 0 || o.read != o.blob.Size || !o.skipped && hex.EncodeToString(o.sum.Sum(nil)) != string(o.blob.SHA256):
		return o.damaged("it is not what was stored")
	}
	return io.EOF
}

// Close closes the stream.
func (o *blobOpener) Close() error { return o.from.Close() }
