package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
)

// serveLoop does the turns of loops, by an order that it reads.
func serveLoop(ctx context.Context, in io.Reader, out io.Writer) error {
	return serveAsker(ctx, in, out, func(o order) (func(context.Context, int, int) error, error) {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, o.AtOnce
		loops := make([]loop, o.AtOnce)
		return func(ctx context.Context, worker, number int) (err error) {
			l := &loops[worker]
			if number%turnsEach == 0 { // a new agent
				_ = l.file.Close() // every line was synced; nil has nothing to close
				*l = loop{client: &http.Client{Transport: transport}, url: o.URL}
				if l.file, err = os.Create(filepath.Join(o.Dir, bench.AgentID(worker, number/turnsEach).Key)); err != nil {
					return err
				}
			}
			return l.turn(ctx)
		}, nil
	})
}

// loop is what can hardly be cheaper: it calls the model and appends each message
// to a file of the agent's, on disk before the next step. It has no recovery, no
// queue and no endpoint.
type loop struct {
	file    *os.File
	client  *http.Client
	url     string
	history []loopMessage
}

type loopMessage struct {
	Role       string     `json:"role"`
	Content    string     `json:"content,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	ToolCalls  []loopCall `json:"tool_calls,omitempty"`
}

type loopCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// turn does one turn of two model calls and one tool call.
func (l *loop) turn(ctx context.Context) error {
	if err := l.keep(loopMessage{Role: "user", Content: bench.UserInput}); err != nil {
		return err
	}
	for {
		answer, err := l.call(ctx)
		if err != nil {
			return err
		}
		if err := l.keep(answer); err != nil {
			return err
		}
		if len(answer.ToolCalls) == 0 {
			return nil
		}
		for _, c := range answer.ToolCalls {
			var in struct{ Text string }
			if err := json.Unmarshal([]byte(c.Function.Arguments), &in); err != nil {
				return err
			}
			if err := l.keep(loopMessage{Role: "tool", ToolCallID: c.ID, Content: in.Text}); err != nil {
				return err
			}
		}
	}
}

// keep appends a message and waits until it is on disk.
func (l *loop) keep(m loopMessage) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return err
	}
	l.history = append(l.history, m)
	return l.file.Sync()
}

// call asks the model.
func (l *loop) call(ctx context.Context) (loopMessage, error) {
	body, err := json.Marshal(struct {
		Model    string        `json:"model"`
		Messages []loopMessage `json:"messages"`
		Stream   bool          `json:"stream"`
	}{"two", l.history, true})
	if err != nil {
		return loopMessage{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return loopMessage{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return loopMessage{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return loopMessage{}, fmt.Errorf("the model server answered %s", resp.Status)
	}
	return streamed(resp.Body)
}

// streamed joins the chunks of an answer with one call at most.
func streamed(body io.Reader) (loopMessage, error) {
	m := loopMessage{Role: "assistant"}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta loopMessage `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return m, err
		}
		for _, c := range chunk.Choices {
			m.join(c.Delta)
		}
	}
	return m, lines.Err()
}

func (m *loopMessage) join(delta loopMessage) {
	m.Content += delta.Content
	for _, c := range delta.ToolCalls {
		if len(m.ToolCalls) == 0 {
			m.ToolCalls = []loopCall{{Type: "function"}}
		}
		all := &m.ToolCalls[0]
		all.ID += c.ID
		all.Function.Name += c.Function.Name
		all.Function.Arguments += c.Function.Arguments
	}
}
