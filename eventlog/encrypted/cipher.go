package encrypted

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// dataKey is the key of one agent. It is a messages.Cipher, safe for concurrent
// use.
type dataKey struct {
	id     string // 16 hex digits
	secret []byte
	aead   cipher.AEAD
	nonces []byte // key of the HMAC that makes nonces
}

// newDataKey derives the keys of an agent from its secret.
func newDataKey(id string, secret []byte) *dataKey {
	return &dataKey{id: id, secret: secret, aead: newGCM(derive(secret, "encrypt", 32)), nonces: derive(secret, "nonce", 32)}
}

// Encrypt encrypts plain, bound to context; see messages.Cipher.
func (k *dataKey) Encrypt(plain, context []byte) []byte {
	nonce := k.mac(context, plain)[:k.aead.NonceSize()]
	out := make([]byte, 0, len(nonce)+len(plain)+k.aead.Overhead())
	return k.aead.Seal(append(out, nonce...), nonce, plain, context)
}

var errCut = errors.New("the encrypted bytes are cut off")

// Decrypt decrypts what Encrypt returned; see messages.Cipher.
func (k *dataKey) Decrypt(encrypted, context []byte) ([]byte, error) {
	n := k.aead.NonceSize()
	if len(encrypted) < n+k.aead.Overhead() {
		return nil, errCut
	}
	return k.aead.Open(nil, encrypted[:n], encrypted[n:], context)
}

// mac returns the HMAC of several byte strings, each preceded by its length.
func (k *dataKey) mac(parts ...[]byte) []byte {
	m := hmac.New(sha256.New, k.nonces)
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		m.Write(size[:])
		m.Write(p)
	}
	return m.Sum(nil)
}
