package encrypted

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// Key is a wrapping key: the operator's own secret.
type Key [32]byte

// ParseKeys reads wrapping keys, separated by commas or white space: each 32
// bytes, as 64 hex digits or in base64. The error never shows a key.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	for i, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		b, err := hex.DecodeString(word)
		for _, e := range [...]*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			if err != nil {
				b, err = e.DecodeString(word)
			}
		}
		if err != nil || len(b) != len(Key{}) {
			return nil, fmt.Errorf("wrapping key %d has %d characters and is not 32 bytes in hex or base64: make one with openssl rand -hex 32", i+1, len(word))
		}
		keys = append(keys, Key(b))
	}
	if keys == nil {
		return nil, fmt.Errorf("there is no wrapping key: make one with openssl rand -hex 32")
	}
	return keys, nil
}

// ID returns 16 hex digits that identify the key and reveal nothing of it.
func (k Key) ID() string { return hex.EncodeToString(derive(k[:], "id", 8)) }

// derive returns size bytes of HKDF-SHA256 for one use of a key.
func derive(secret []byte, use string, size int) []byte {
	b, err := hkdf.Key(sha256.New, secret, nil, "reprise "+use, size)
	if err != nil {
		panic(err) // only for a size beyond HKDF's limit
	}
	return b
}

func newGCM(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err == nil {
		var aead cipher.AEAD
		if aead, err = cipher.NewGCM(block); err == nil {
			return aead
		}
	}
	panic(err) // only for a key of another size
}

// wrap encrypts a secret for the bucket, with a random nonce.
func (k Key) wrap(secret []byte, about string) []byte {
	aead := newGCM(derive(k[:], "wrap", 32))
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return aead.Seal(nonce, nonce, secret, []byte(about))
}

func (k Key) unwrap(wrapped []byte, about string) ([]byte, error) {
	aead := newGCM(derive(k[:], "wrap", 32))
	if len(wrapped) < aead.NonceSize() {
		return nil, fmt.Errorf("a wrapped key of %d bytes", len(wrapped))
	}
	return aead.Open(nil, wrapped[:aead.NonceSize()], wrapped[aead.NonceSize():], []byte(about))
}
