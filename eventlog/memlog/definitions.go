package memlog

import (
	"context"
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// PutDefinition stores a definition under its hash; see eventlog.Definitions.
func (l *Log) PutDefinition(ctx context.Context, definition []byte) (messages.Digest, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	hash := messages.DigestOf(definition)
	l.definitions[hash] = slices.Clone(definition)
	return hash, nil
}

// Definition returns a stored definition; see eventlog.Definitions.
func (l *Log) Definition(ctx context.Context, hash messages.Digest) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	definition, ok := l.definitions[hash]
	if !ok {
		return nil, messages.Refuse(messages.NotFound, "definition %q is not stored here", hash)
	}
	return slices.Clone(definition), nil
}
