package actors

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// How many agents are activated at the same time: on a node, and of them in one partition, so
// that a stream of the log that does not answer leaves tokens for the partitions of others.
const (
	activationsAtOnce = 64
	activationsOfOne  = 8
)

// tokens are those of one partition for activations. An agent is spawned with one and
// releases it when it is loaded and has handled its first command: many new addresses at once
// wait in their partitions, and not in the log's connection or the run queue. Safe for
// concurrent use.
type tokens struct{ node, partition *semaphore.Weighted }

// newTokens returns those of a partition, which are also counted for the node.
func newTokens(node *semaphore.Weighted) tokens {
	return tokens{node, semaphore.NewWeighted(activationsOfOne)}
}

// try takes a token if one is free, and returns what releases it.
func (t tokens) try(ctx context.Context) (release func(), ok bool) {
	if !t.partition.TryAcquire(1) {
		return nil, false
	}
	if !t.node.TryAcquire(1) {
		t.partition.Release(1)
		return nil, false
	}
	return t.taken(ctx), true
}

// take waits for a token, in turn with the other partitions, until ctx ends.
func (t tokens) take(ctx context.Context) (release func(), err error) {
	if err := t.partition.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if err := t.node.Acquire(ctx, 1); err != nil {
		t.partition.Release(1)
		return nil, err
	}
	return t.taken(ctx), nil
}

// taken returns what releases a token once, however often it is called. The end of ctx
// releases it, too.
func (t tokens) taken(ctx context.Context) (release func()) {
	once := sync.OnceFunc(func() {
		t.node.Release(1)
		t.partition.Release(1)
	})
	stop := context.AfterFunc(ctx, once)
	return func() {
		stop()
		once()
	}
}
