package encrypted

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
)

// Memory is a bucket in memory. The zero value is empty. Safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	revision uint64
	values   map[string]memoryValue
}

type memoryValue struct {
	value    []byte
	revision uint64
}

var _ Bucket = (*Memory)(nil)

// Get returns a value; see Bucket.
func (m *Memory) Get(ctx context.Context, name string) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.values[name]
	return bytes.Clone(v.value), v.revision, ctx.Err()
}

// Put stores a value; see Bucket.
func (m *Memory) Put(ctx context.Context, name string, value []byte, revision uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values[name].revision != revision {
		return ErrChanged
	}
	if m.values == nil {
		m.values = make(map[string]memoryValue)
	}
	m.revision++
	m.values[name] = memoryValue{bytes.Clone(value), m.revision}
	return nil
}

// Erase removes a value; see Bucket.
func (m *Memory) Erase(ctx context.Context, name string, revision uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.values[name]; v.revision == revision {
		clear(v.value)
		delete(m.values, name)
	}
	return ctx.Err()
}

// List returns all names; see Bucket.
func (m *Memory) List(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.values)), ctx.Err()
}
