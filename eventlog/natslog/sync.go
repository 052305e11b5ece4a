package natslog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// SyncUnknown is what [AskSync] says where it has not seen it.
const SyncUnknown = "unknown"

// syncWait is how long servers may take to answer.
const syncWait = 2 * time.Second

// jsz is what a server answers about its JetStream.
type jsz struct {
	Server struct {
		Name    string `json:"name"`
		Cluster string `json:"cluster"`
	} `json:"server"`
	Data struct {
		Disabled bool `json:"disabled"`
		Config   struct {
			Always   bool          `json:"sync_always"`
			Interval time.Duration `json:"sync_interval"`
		} `json:"config"`
		Meta *struct {
			Size int `json:"cluster_size"`
		} `json:"meta_cluster"`
	} `json:"data"`
	Error *struct {
		Description string `json:"description"`
	} `json:"error"`
}

// AskSync asks every server when what it acknowledges is on disk, on a connection of
// the system account. The weakest setting wins: "always", or "every 2m0s" and the
// like. It is [SyncUnknown] unless all servers with JetStream have answered; the error
// says why then.
func AskSync(ctx context.Context, nc *nats.Conn) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, syncWait)
	defer cancel()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return SyncUnknown, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only with the connection
	if err := nc.PublishRequest("$SYS.REQ.SERVER.PING.JSZ", inbox, nil); err != nil {
		return SyncUnknown, err
	}
	weakest := time.Duration(0)
	for seen, size := 0, 1; seen < size; {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return SyncUnknown, unseen(err, nc, seen, size)
		}
		var a jsz
		if err := json.Unmarshal(m.Data, &a); err != nil {
			return SyncUnknown, fmt.Errorf("a server's answer about JetStream cannot be read: %w", err)
		}
		if a.Error != nil {
			return SyncUnknown, fmt.Errorf("server %s: %s", a.Server.Name, a.Error.Description)
		}
		switch {
		case a.Data.Disabled:
			continue
		case a.Data.Meta != nil:
			size = max(size, a.Data.Meta.Size)
		case a.Server.Cluster != "":
			return SyncUnknown, fmt.Errorf("server %s has not found its cluster yet", a.Server.Name)
		}
		seen++
		if !a.Data.Config.Always {
			weakest = max(weakest, a.Data.Config.Interval)
		}
	}
	if weakest == 0 {
		return "always", nil
	}
	return fmt.Sprintf("every %v", weakest), nil
}

// unseen returns why not all servers have reported their setting.
func unseen(err error, nc *nats.Conn, seen, size int) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders) || denied(nc) != nil || seen == 0:
		return fmt.Errorf("no server reports to this user: it must be a user of the system account: %w", err)
	default:
		return fmt.Errorf("%d of %d servers have answered: %w", seen, size, err)
	}
}
