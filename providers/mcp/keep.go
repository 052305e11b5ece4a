package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
)

const (
	// startLimit is how long a server may take until its tools are known: some are downloaded first.
	startLimit = 2 * time.Minute
	// listLimit is how long one that runs may take to list its tools.
	listLimit = 30 * time.Second
	// relist is how often tools are listed that were not reported as changed.
	relist = time.Minute
	// leastPause and mostPause are how long a server rests between two attempts. A call that wants
	// it ends a pause that is longer than the least.
	leastPause = 500 * time.Millisecond
	mostPause  = time.Minute
	// listBurst is how often tools that keep changing are listed before the rate holds.
	listBurst = 5
	// maxTools is also how many pages a list may have.
	maxTools = 1000
)

// keep connects to the server again and again until ctx ends.
func (s *Server) keep(ctx context.Context) {
	defer close(s.stopped)
	pause := leastPause
	for ctx.Err() == nil {
		began := time.Now()
		err := s.live(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > mostPause {
			pause = leastPause
		}
		s.logger.Warn("an mcp server is not available", "error", err, "pause", pause)
		s.rest(ctx, pause)
		pause = min(2*pause, mostPause)
	}
}

// rest waits until the next attempt.
func (s *Server) rest(ctx context.Context, pause time.Duration) {
	select {
	case <-time.After(leastPause):
	case <-ctx.Done():
	}
	select {
	case <-time.After(pause - leastPause):
	case <-s.wanted:
	case <-ctx.Done():
	}
}

// live connects once and returns why that failed, or why the connection has ended.
func (s *Server) live(ctx context.Context) error {
	starting, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	l, err := s.dial(starting)
	if err != nil {
		return s.failed(fmt.Errorf("it cannot be used: %w", err))
	}
	defer l.close()
	tools, err := list(starting, l.session)
	if err != nil {
		return s.failed(fmt.Errorf("its tools cannot be listed: %w", l.because(err)))
	}
	s.up(l, tools)
	return s.lost(s.follow(ctx, l))
}

// follow lists the tools again when they may have changed, a few times at once and then at a rate. It
// returns why the connection cannot be used any more.
func (s *Server) follow(ctx context.Context, l *line) error {
	poll := time.NewTicker(relist)
	defer poll.Stop()
	for pace := rate.NewLimiter(rate.Every(relist/4), listBurst); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.ended:
			return l.why()
		case <-s.listed:
		case <-poll.C:
		}
		select {
		case <-time.After(pace.Reserve().Delay()):
		case <-ctx.Done():
		case <-l.ended:
		}
		limited, cancel := context.WithTimeout(ctx, listLimit)
		tools, err := list(limited, l.session)
		cancel()
		switch {
		case err == nil:
			s.offer(tools)
		case !s.busy(): // else a call may keep it from answering
			return fmt.Errorf("its tools cannot be listed any more: %w", err)
		}
	}
}

// list returns the server's tools by name.
func list(ctx context.Context, session *sdk.ClientSession) ([]*sdk.Tool, error) {
	var tools []*sdk.Tool
	bytes := 0
	seen := make(map[string]bool)
	for p := new(sdk.ListToolsParams); !seen[p.Cursor]; {
		seen[p.Cursor] = true
		page, err := listed(ctx, session, p)
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(page.Tools)
		if err != nil {
			return nil, err
		}
		tools, bytes = append(tools, page.Tools...), bytes+len(encoded)
		switch {
		case len(tools) > maxTools || len(seen) > maxTools:
			return nil, fmt.Errorf("there are more than %d tools or pages of them", maxTools)
		case bytes > maxMessage:
			return nil, fmt.Errorf("they have more than %d bytes", maxMessage)
		case page.NextCursor == "":
			slices.SortStableFunc(tools, func(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) })
			return tools, nil
		}
		p = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, errors.New("a page of them names one before it as the next")
}

// listed returns a page of the tools. The SDK has some kept, and does not ask ctx for those.
func listed(ctx context.Context, session *sdk.ClientSession, p *sdk.ListToolsParams) (page *sdk.ListToolsResult, err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	err = guarded(func() error {
		page, err = session.ListTools(withDelivery(ctx, new(delivery)), p)
		return err
	})
	return page, err
}

func (s *Server) up(l *line, tools []*sdk.Tool) {
	s.offer(tools)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line, s.down, s.silent = l, nil, false
	s.attempted()
	s.logger.Info("an mcp server is available", "tools", len(tools))
}

// failed notes that an attempt has failed, and returns why.
func (s *Server) failed(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = errors.New("MCP server " + s.config.Name + ": " + s.words(err))
	s.attempted()
	return s.down
}

// attempted wakes those who wait for the end of an attempt. The caller holds s.mu.
func (s *Server) attempted() {
	close(s.tried)
	s.tried = make(chan struct{})
}

// lost notes that there is no connection any more, and returns why. Its tools stay those of
// agents: the next call has it started again.
func (s *Server) lost(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line, s.down = nil, errors.New("MCP server "+s.config.Name+": "+s.words(err))
	return s.down
}

// offer takes over a list of tools.
func (s *Server) offer(tools []*sdk.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reflect.DeepEqual(tools, s.tools) {
		return
	}
	s.tools = tools
	close(s.changed)
	s.changed = make(chan struct{})
}

// busy reports whether a call runs that may keep the server from answering anything else. Once a call
// has had no answer for all its time, and no other has had one since, the server hangs instead.
func (s *Server) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls > 0 && !s.silent
}

// connected returns a connection. If there is none it waits for the next attempt to get one.
func (s *Server) connected(ctx context.Context) (*line, error) {
	for first := true; ; first = false {
		s.mu.Lock()
		l, down, tried := s.line, s.down, s.tried
		s.mu.Unlock()
		switch {
		case l != nil && !l.over():
			return l, nil
		case l == nil && !first:
			return nil, down
		}
		note(s.wanted)
		select {
		case <-tried:
		case <-s.stopped:
			return nil, fmt.Errorf("MCP server %s: it was stopped with its node", s.config.Name)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// note puts a value into a channel that holds one, unless it does already.
func note(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// begin counts a call and returns the token for its progress.
func (s *Server) begin(show func(string)) (token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.tokens++
	token = strconv.Itoa(s.tokens)
	s.shows[token] = show
	return token
}

// end notes that a call has ended, and why if it had no answer.
func (s *Server) end(token string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	if !errors.Is(err, context.Canceled) {
		s.silent = errors.Is(err, context.DeadlineExceeded)
	}
	delete(s.shows, token)
}
