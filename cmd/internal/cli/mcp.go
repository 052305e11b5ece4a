package cli

import (
	"context"
	"sync"
	"time"

	"github.com/reprise-dev/reprise/providers/mcp"
)

// mcpPatience is how long a node that starts waits for MCP servers to list their tools. Those of
// slower ones come later, and agents have them from their next turn on.
const mcpPatience = 10 * time.Second

// serveTools starts the MCP servers that agents use and gives the agents their tools. The servers
// run until stop is called.
func (n *node) serveTools(ctx context.Context) (stop func(), err error) {
	servers := make(map[string]*mcp.Server)
	stop = func() {
		var wg sync.WaitGroup
		for _, s := range servers {
			wg.Go(s.Close)
		}
		wg.Wait()
	}
	for _, m := range n.file.MCP {
		if !m.Used {
			continue
		}
		c := m.Config()
		c.Logger = n.cfg.Logger
		if servers[m.Name], err = mcp.New(c); err != nil {
			delete(servers, m.Name)
			stop()
			return nil, err
		}
	}
	for i, a := range n.file.Agents {
		for _, use := range a.MCP {
			source, err := servers[use.Server].Select(use.Selection)
			if err != nil {
				stop()
				return nil, err
			}
			n.cfg.Agents[i].Sources = append(n.cfg.Agents[i].Sources, source)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, mcpPatience)
	defer cancel()
	for _, s := range servers {
		if err := await(ctx, s); err != nil {
			n.cfg.Logger.Warn("a node starts without the tools of an mcp server", "error", err)
		}
	}
	return stop, nil
}

// await waits until the tools of a server are known. The error says why they were not when ctx ended.
func await(ctx context.Context, s *mcp.Server) error {
	all, err := s.Select(mcp.Selection{})
	if err != nil {
		return err
	}
	_, known := all.Tools()
	if err = s.Ready(ctx); err == nil {
		return nil
	}
	select {
	case <-known:
		return nil
	case <-ctx.Done():
		return err
	}
}
