// Package protocoltest runs a client of the Synadia Agent Protocol that others wrote: the official SDK for
// TypeScript, from its package in the npm registry.
//
// Where the registry does not have the SDK, a caller of a hundred lines takes its place. It is written after
// the text of the protocol, over the official NATS client for JavaScript (plain.mjs).
package protocoltest

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// What npm installs. If REPRISE_AGENTS_SDK names a folder whose node_modules has both, that is used, and
// nothing is installed.
const (
	sdk       = "@synadia-ai/agents@0.5.2"
	transport = "@nats-io/transport-node@3.4.0"
)

//go:embed *.mjs
var programs embed.FS

// Agent is an agent as discovery shows it.
type Agent struct {
	Agent, Owner, Name, Version, Instance, Subject, Queue string
	// Max is the largest prompt, in bytes.
	Max         int
	Attachments bool
	// Alive reports that a heartbeat has come, There that the instance answers to its name.
	Alive, There bool
}

// Message is what a client reads of a stream, or its end. Streams end with Type end or error.
type Message struct {
	// Type is status, response, query, end or error.
	Type string
	Text string
	// Query is the id of a question.
	Query string
	// Name and Code are the class and the status of an error; Code is 0 if the client made it.
	Name string
	Code int
}

// Client is a client in a process of its own. Its methods are for one goroutine.
type Client struct {
	t   *testing.T
	ctx context.Context
	in  io.Writer
	id  int
	// gone is closed when the process writes no more.
	gone chan struct{}

	mu   sync.Mutex
	open map[int]chan line
}

// line is a line of the process.
type line struct {
	ID     int
	Ready  string
	Agents []Agent
	Message
}

// Start connects a client to a NATS server. It skips t unless REPRISE_PROTOCOL is set, as by make
// test-protocol. The client ends with t, or when ctx ends.
func Start(ctx context.Context, t *testing.T, url string) *Client {
	t.Helper()
	if os.Getenv("REPRISE_PROTOCOL") == "" {
		t.Skip("left to make test-protocol: it needs npm")
	}
	dir, which := install(t)
	node := exec.CommandContext(ctx, "node", filepath.Join(dir, "client.mjs"), url, which)
	node.Stderr = t.Output()
	c := &Client{t: t, ctx: ctx, open: map[int]chan line{0: make(chan line, 1)}}
	in, err := node.StdinPipe()
	c.ok(err)
	out, err := node.StdoutPipe()
	c.ok(err)
	c.ok(node.Start())
	c.in, c.gone = in, make(chan struct{})
	go func() {
		defer close(c.gone)
		c.read(out)
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-c.gone
		_ = node.Wait()
	})
	t.Logf("the client is %s", c.next(0).Ready)
	return c
}

// install returns a folder with the programs and what they import, and which client that is.
func install(t *testing.T) (dir, which string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, programs); err != nil {
		t.Fatal(err)
	}
	if from := os.Getenv("REPRISE_AGENTS_SDK"); from != "" {
		if err := os.Symlink(filepath.Join(from, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		return dir, "sdk"
	}
	npm := func(packages ...string) (string, error) {
		args := append([]string{"install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts"}, packages...)
		out, err := exec.Command("npm", args...).CombinedOutput()
		return string(out), err
	}
	out, err := npm(sdk, transport)
	if err == nil {
		return dir, "sdk"
	}
	if !strings.Contains(out, "E404") && !strings.Contains(out, "ETARGET") {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	t.Logf("the registry does not have %s, or not all that it needs", sdk)
	if out, err := npm(transport); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	return dir, "plain"
}

func (c *Client) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// read hands out what the process writes until it ends.
func (c *Client) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			c.t.Errorf("%v in %s", err, lines.Bytes())
			return
		}
		c.mu.Lock()
		to := c.open[l.ID]
		c.mu.Unlock()
		to <- l
	}
}

// ask sends a command and returns the id of what comes of it.
func (c *Client) ask(do string, fields map[string]any) (id int) {
	c.t.Helper()
	c.id++
	c.mu.Lock()
	c.open[c.id] = make(chan line, 4096)
	c.mu.Unlock()
	command := map[string]any{"do": do, "id": c.id}
	for name, v := range fields {
		command[name] = v
	}
	b, err := json.Marshal(command)
	c.ok(err)
	_, err = c.in.Write(append(b, '\n'))
	c.ok(err)
	return c.id
}

func (c *Client) next(id int) line {
	c.t.Helper()
	c.mu.Lock()
	from := c.open[id]
	c.mu.Unlock()
	select {
	case l := <-from:
		return l
	case <-c.gone:
		c.t.Fatal("the client has ended")
	case <-c.ctx.Done():
		c.t.Fatal("the client does not answer")
	}
	panic("unreachable")
}

// Discover returns the agents that answer.
func (c *Client) Discover() []Agent {
	c.t.Helper()
	return c.next(c.ask("discover", nil)).Agents
}

// Stream is the reply to a prompt.
type Stream struct {
	c  *Client
	id int
}

// Prompt sends a body, text or what JSON can hold. The client gives the stream up when nothing comes for
// as long as silence.
func (c *Client) Prompt(subject string, body any, silence time.Duration) *Stream {
	c.t.Helper()
	return &Stream{c, c.ask("prompt", map[string]any{"subject": subject, "body": body, "silence": silence.Milliseconds()})}
}

// Next waits for the next message.
func (s *Stream) Next() Message {
	s.c.t.Helper()
	return s.c.next(s.id).Message
}

// Rest reads to the end. It returns the text, how many keep-alives came, and how the stream ended.
func (s *Stream) Rest() (text string, acks int, end Message) {
	s.c.t.Helper()
	for {
		switch m := s.Next(); m.Type {
		case "end", "error":
			return text, acks, m
		case "response":
			text += m.Text
		case "status":
			if m.Text == "ack" {
				acks++
			}
		}
	}
}

// Answer answers a question.
func (s *Stream) Answer(query string, body any) {
	s.c.t.Helper()
	s.c.ask("answer", map[string]any{"stream": s.id, "query": query, "body": body})
}

// Stop has the client read no more.
func (s *Stream) Stop() {
	s.c.t.Helper()
	s.c.ask("stop", map[string]any{"stream": s.id})
}
