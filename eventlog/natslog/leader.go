package natslog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Revision is the newest revision of a key as the leader of its bucket has it; 0: the
// key is not there, or was deleted. A get by the library is answered by any server,
// which may not have the key yet.
func Revision(ctx context.Context, nc *nats.Conn, bucket, key string) (uint64, error) {
	stream, at := "KV_"+bucket, place{Last: "$KV." + bucket + "." + key}
	ask, err := json.Marshal(at)
	if err != nil {
		return 0, err
	}
	answer, err := nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, ask)
	if err != nil {
		return 0, fmt.Errorf("read %v in %s: %w", at, stream, err)
	}
	m, err := at.read(answer, stream)
	if err != nil || m == nil || m.header.Get("KV-Operation") != "" || m.header.Get(jetstream.MarkerReasonHeader) != "" {
		return 0, err
	}
	return m.seq, nil
}
