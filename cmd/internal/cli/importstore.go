package cli

import (
	"context"
	"errors"

	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/eventlog"
)

// writableStore connects to the store that the flags choose, beside its nodes. What is written is
// encrypted if the store is. The caller calls closes.
func (a *app) writableStore(ctx context.Context, keyFile string) (store eventlog.Store, closes func(), err error) {
	ring, err := wrappingKeys(keyFile, config.EncryptionConfig{})
	if err != nil {
		return store, nil, err
	}
	o, file, err := a.server()
	if err != nil {
		return store, nil, err
	}
	dialled, err := a.dial(o, file)
	if err != nil {
		return store, nil, err
	}
	store, err = cluster.OpenStore(ctx, dialled.Conn, o.Root, ring)
	if errors.Is(err, cluster.ErrNoKey) {
		err = fail("give it with --key-file or "+keyVariable, "%v", err)
	}
	if err != nil {
		dialled.Conn.Close()
		return store, nil, err
	}
	return store, dialled.Conn.Close, nil
}
