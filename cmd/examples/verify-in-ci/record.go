package main

import (
	"context"
	"os"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// record writes an agent to a file, as reprise export does.
func record(ctx context.Context, c *client.Client, agent, to string) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	id, err := messages.ParseAgentID(agent)
	if err != nil {
		return err
	}
	w, err := export.NewWriter(f, export.Head{Agent: id.Full()})
	if err != nil {
		return err
	}
	for line, err := range c.Frames(ctx, agent) {
		if err != nil {
			return err
		}
		if line.Definition != "" {
			err = w.Definition(line.Definition, line.Data)
		} else if frame, bad := messages.DecodeFrame(id, line.Frame); bad == nil {
			err = w.Frame(frame)
		} else {
			err = bad
		}
		if err != nil {
			return err
		}
	}
	_, err = w.Close(nil, nil)
	return err
}
