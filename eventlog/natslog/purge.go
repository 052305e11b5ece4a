package natslog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/messages"
)

// Purge takes history away; see eventlog.Purger. An error may have come after the
// messages were removed: purge again.
func (l *Log) Purge(ctx context.Context, a messages.AgentID, before uint64) error {
	newest, err := l.newest(ctx, a)
	switch {
	case err != nil:
		return err
	case newest == nil || before <= 1:
		return nil
	case newest.seq < before:
		return fmt.Errorf("purge %s below sequence %d: its newest message, at %d, must stay, for it is the fence", a, before, newest.seq)
	}
	p := a.Partition()
	return l.conn(p).purge(ctx, l.stream[p], newest.subject, before)
}

// purgeWait is how long a purge may take. It looks at every block of a stream
// that holds the subject.
const purgeWait = time.Minute

// purge removes what the filter matches below sequence before, or all of it if
// that is 0.
func (c *conn) purge(ctx context.Context, stream, filter string, before uint64) error {
	ask, err := json.Marshal(struct {
		Filter string `json:"filter"`
		Before uint64 `json:"seq,omitempty"`
	}{filter, before})
	if err != nil {
		return err
	}
	answer, err := c.requestWithin(ctx, &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + stream, Data: ask}, purgeWait)
	if err != nil {
		return fmt.Errorf("purge %s in %s: %w", filter, stream, err)
	}
	var got struct {
		Error   *jetstream.APIError `json:"error"`
		Success bool                `json:"success"`
	}
	err = json.Unmarshal(answer.Data, &got)
	switch {
	case err != nil:
	case got.Error != nil:
		err = got.Error
	case !got.Success:
		err = fmt.Errorf("unreadable answer %q", answer.Data)
	}
	if err != nil {
		return fmt.Errorf("purge %s in %s: %w", filter, stream, err)
	}
	return nil
}
