package bench

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
)

// serveLoop does the turns of loops, for the plans it reads.
func serveLoop(ctx context.Context, in io.Reader, out io.Writer) error {
	return serveAsker(ctx, in, out, func(t target) (starter, func(), error) {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256
		client := &http.Client{Transport: transport}
		return func(agent int) (func(context.Context) error, func(), error) {
			file, err := os.Create(filepath.Join(t.Dir, agentID(agent, 0).Key))
			if err != nil {
				return nil, nil, err
			}
			l := &loop{file: file, client: client, url: t.URL, stream: t.Stream}
			return l.turn, func() { _ = file.Close() }, nil // every line was synced
		}, transport.CloseIdleConnections, nil
	})
}

// fileLoop measures loops in a process of their own, which runs with Go's
// defaults: what a node sets up for itself does not change them.
func (l *lab) fileLoop(ctx context.Context, url string, stream bool, p plan) (tally, error) {
	dir, err := os.MkdirTemp(l.dir, "loop-")
	if err != nil {
		return tally{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // with the whole folder at the latest
	return l.remote(ctx, loopWithFsync, target{url, stream, dir}, p, nil)
}

// loop is what can hardly be cheaper: it calls the model and appends each message
// to a file of the agent's, on disk before the next step. It has no recovery, no
// queue and no endpoint.
type loop struct {
	file    *os.File
	client  *http.Client
	url     string
	stream  bool
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
	if err := l.keep(loopMessage{Role: "user", Content: userInput}); err != nil {
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
	}{"two", l.history, l.stream})
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
	if l.stream {
		return streamed(resp.Body)
	}
	var whole struct {
		Choices []struct {
			Message loopMessage `json:"message"`
		} `json:"choices"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&whole); err != nil {
		return loopMessage{}, err
	}
	_, _ = io.Copy(io.Discard, resp.Body) // the connection is used again
	if len(whole.Choices) != 1 {
		return loopMessage{}, fmt.Errorf("the model server gave %d choices", len(whole.Choices))
	}
	return whole.Choices[0].Message, nil
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
