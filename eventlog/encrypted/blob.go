package encrypted

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

// An encrypted blob is the 8 bytes of its key's id, a salt of 16 bytes from which the blob's
// own key is derived, and segments of 64 KiB, each encrypted by itself. The nonce of a segment
// is its number and whether it is the last.
const (
	segment  = 64 << 10
	tag      = 16
	saltSize = 16
	headSize = idSize + saltSize
)

// encryptedSize returns the encrypted size of a blob of size bytes.
func encryptedSize(size int64) int64 {
	segments := max(1, (size+segment-1)/segment)
	return headSize + size + segments*tag
}

// PutBlob encrypts what r holds and stores it; see eventlog.Blobs. SHA256 of the returned blob
// is that of the plain bytes, Stored that of the encrypted ones.
func (l *Log) PutBlob(ctx context.Context, a messages.AgentID, r io.ReadSeeker) (messages.Blob, error) {
	if err := l.closed(); err != nil {
		return messages.Blob{}, err
	}
	if l.keys == nil {
		return l.log.PutBlob(ctx, a, r)
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
	encrypter, err := newBlobEncrypter(key, a, sum, r, begin)
	if err != nil {
		return messages.Blob{}, err
	}
	stored, err := l.log.PutBlob(ctx, a, encrypter)
	return messages.Blob{SHA256: messages.Digest(hex.EncodeToString(sum)), Size: size, Stored: stored.SHA256}, err
}

// Blob streams a blob, decrypted; see eventlog.Blobs.
func (l *Log) Blob(ctx context.Context, a messages.AgentID, b messages.Blob) (io.ReadCloser, error) {
	if b.Stored == "" {
		return l.log.Blob(ctx, a, b)
	}
	if l.keys == nil {
		return nil, messages.Refuse(messages.Damaged, "blob %s of %s cannot be read: %v", b.SHA256, a, ErrOff)
	}
	r, err := l.log.Blob(ctx, a, messages.Blob{SHA256: b.Stored, Size: encryptedSize(b.Size)})
	if err != nil {
		return nil, err
	}
	d := &blobDecrypter{from: r, blob: b, agent: a, sum: sha256.New()}
	if err := d.begin(ctx, l.keys); err != nil {
		_ = r.Close()
		return nil, err
	}
	return d, nil
}

// blobKey returns the key of one blob, bound to its agent.
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

// blobEncrypter reads as the encrypted form of from. It can be read again from the beginning.
type blobEncrypter struct {
	from  io.ReadSeeker
	begin int64 // position of from at which the blob begins
	at    int64
	head  []byte
	key   cipher.AEAD
	out   []byte // encrypted and not read yet
	plain []byte
	ahead []byte // first byte of the next segment; empty: there is none
	n     uint64
	done  bool
}

func newBlobEncrypter(k *dataKey, a messages.AgentID, sum []byte, from io.ReadSeeker, begin int64) (*blobEncrypter, error) {
	id, err := hex.DecodeString(k.id)
	if err != nil {
		return nil, err
	}
	salt := k.mac([]byte(a.Full()), []byte("blob"), sum)[:saltSize]
	e := &blobEncrypter{from: from, begin: begin, head: append(id, salt...), key: blobKey(k, a, salt), plain: make([]byte, segment+1)}
	_, err = e.Seek(0, io.SeekStart)
	return e, err
}

var errSeek = errors.New("an encrypted blob is read from its beginning")

// Seek returns to the beginning; other offsets are an error.
func (e *blobEncrypter) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekCurrent {
		offset += e.at
	}
	if offset != 0 || whence == io.SeekEnd {
		return 0, errSeek
	}
	e.out, e.ahead, e.n, e.at, e.done = append([]byte(nil), e.head...), nil, 0, 0, false
	_, err := e.from.Seek(e.begin, io.SeekStart)
	return 0, err
}

// Read returns the next encrypted bytes.
func (e *blobEncrypter) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.done {
			return 0, io.EOF
		}
		if err := e.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, e.out)
	e.out, e.at = e.out[n:], e.at+int64(n)
	return n, nil
}

// next encrypts the next segment. It reads one byte more, to find whether it is the last.
func (e *blobEncrypter) next() error {
	have := copy(e.plain, e.ahead)
	n, err := io.ReadFull(e.from, e.plain[have:])
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.done = true
	case err != nil:
		return err
	}
	whole := e.plain[:have+n]
	if !e.done {
		whole = e.plain[:segment]
	}
	e.out = e.key.Seal(e.out[:0], segmentNonce(e.n, e.done), whole, nil)
	e.n++
	if !e.done {
		e.ahead = append(e.ahead[:0], e.plain[segment])
	}
	return nil
}

// blobDecrypter reads as the plain form of an encrypted blob.
type blobDecrypter struct {
	from      io.ReadCloser
	blob      messages.Blob
	agent     messages.AgentID
	key       cipher.AEAD
	sum       hash.Hash
	read      int64
	encrypted []byte
	plain     []byte // decrypted and not read yet
	n         uint64
	done      bool
	// skipped reports that sum does not cover all bytes.
	skipped bool
}

func (d *blobDecrypter) damaged(why string) error {
	return messages.Refuse(messages.Damaged, "blob %s of %s cannot be read: %s", d.blob.SHA256, d.agent, why)
}

func (d *blobDecrypter) begin(ctx context.Context, keys *Keys) error {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(d.from, head); err != nil {
		return d.broken(err)
	}
	key, err := keys.reading(ctx, d.agent, hex.EncodeToString(head[:idSize]))
	switch {
	case errors.Is(err, ErrNoKey):
		return d.damaged(err.Error())
	case err != nil:
		return err
	}
	d.key, d.encrypted = blobKey(key, d.agent, head[idSize:]), make([]byte, segment+tag)
	return nil
}

// broken returns the error for a stream that failed or ended too soon.
func (d *blobDecrypter) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return d.damaged("it is cut off")
	}
	return err
}

// Read returns the next bytes. At the end the whole is compared with its hash.
func (d *blobDecrypter) Read(p []byte) (int, error) {
	for len(d.plain) == 0 {
		if d.done {
			return 0, d.end()
		}
		if err := d.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, d.plain)
	d.sum.Write(d.plain[:n])
	d.plain, d.read = d.plain[n:], d.read+int64(n)
	return n, nil
}

func (d *blobDecrypter) next() error {
	left := d.blob.Size - int64(d.n)*segment
	d.done = left <= segment
	buffer := d.encrypted[:min(left, segment)+tag]
	if _, err := io.ReadFull(d.from, buffer); err != nil {
		return d.broken(err)
	}
	plain, err := d.key.Open(buffer[:0], segmentNonce(d.n, d.done), buffer, nil)
	if err != nil {
		return d.damaged(fmt.Sprintf("segment %d was changed", d.n))
	}
	d.plain = plain
	d.n++
	return nil
}

// Skip skips n bytes, and decrypts from the segment in which they end; see eventlog.Skipper.
func (d *blobDecrypter) Skip(n int64) error {
	if n <= int64(len(d.plain)) {
		d.pass(n)
		return nil
	}
	at := d.read + n
	if at > d.blob.Size {
		return io.ErrUnexpectedEOF
	}
	to := uint64(min(at, d.blob.Size-1) / segment) // the last segment is never empty here
	if to > d.n {
		if err := eventlog.Skip(d.from, int64(to-d.n)*(segment+tag)); err != nil {
			return d.broken(err)
		}
		d.n = to
	}
	d.plain, d.read, d.skipped = nil, int64(d.n)*segment, true
	if at == d.read {
		return nil
	}
	if err := d.next(); err != nil {
		return err
	}
	d.pass(at - d.read)
	return nil
}

// pass skips n bytes of what is decrypted.
func (d *blobDecrypter) pass(n int64) {
	d.skipped = d.skipped || n > 0
	d.plain, d.read = d.plain[n:], d.read+n
}

// end reads to the end of what is stored, where the store checks its own hash.
func (d *blobDecrypter) end() error {
	rest, err := io.Copy(io.Discard, d.from)
	switch {
	case err != nil:
		return err
	case rest > 0 || d.read != d.blob.Size || !d.skipped && hex.EncodeToString(d.sum.Sum(nil)) != string(d.blob.SHA256):
		return d.damaged("it is not what was stored")
	}
	return io.EOF
}

// Close closes the stream.
func (d *blobDecrypter) Close() error { return d.from.Close() }
