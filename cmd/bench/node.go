package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/cmd/internal/bench"
	"github.com/reprise-dev/reprise/cmd/internal/cli"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/scripted"
)

// nodeOrder is what a node's process reads first. It writes the node's id when it serves.
type nodeOrder struct {
	NATS     string
	Replicas int
	IndexDir string
}

// plainKind is the kind of agents that answer at once; heldKind's model never answers.
const plainKind = "plain"

// nodeModel is the model of the nodes of a cluster.
func nodeModel() providers.Provider {
	justSay := scripted.Func(func(providers.Request) scripted.Step { return scripted.Say(bench.UserInput) })
	return providers.Func(func(ctx context.Context, r providers.Request, emit func(providers.Delta)) (providers.Response, error) {
		switch r.Agent.Kind {
		case heldKind:
			<-ctx.Done()
			return providers.Response{}, context.Cause(ctx)
		case plainKind:
			return justSay.Generate(ctx, r, emit)
		}
		return bench.TwoStep.Generate(ctx, r, emit)
	})
}

// serveNode runs a node until its input ends, and then stops it in order.
func serveNode(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var o nodeOrder
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("read what node to start: %w", err)
	}
	cli.Tune("") // as the program does
	node, err := cluster.Start(ctx, cluster.Config{
		NATS: o.NATS, Replicas: o.Replicas, IndexDir: o.IndexDir, Version: "bench", IdleAfter: time.Hour,
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Providers: providers.Set{"bench": nodeModel()},
		Agents:    []actors.Definition{bench.Definition(bench.Kind, bench.Echo), bench.Definition(plainKind), bench.Definition(heldKind)},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	if err := json.NewEncoder(out).Encode(node.ID()); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is what counts
		stop()
	}()
	select {
	case <-ctx.Done():
	case <-node.Ended():
		return node.Err()
	}
	return nil
}
