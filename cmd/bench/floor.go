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
	"strings"
)

// floor is what can hardly be cheaper: a loop that calls the model and appends
// each message to a file of the agent's, on disk before the next step. It has
// no recovery, no queue and no door.
type floor struct {
	file    *os.File
	client  *http.Client
	url     string
	stream  bool
	history []floorMessage
}

type floorMessage struct {
	Role       string      `json:"role"`
	Content    string      `json:"content,omitempty"`
	ToolCallID string      `json:"tool_call_id,omitempty"`
	ToolCalls  []floorCall `json:"tool_calls,omitempty"`
}

type floorCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// turn does one turn of two model calls and one tool call.
func (f *floor) turn(ctx context.Context) error {
	if err := f.keep(floorMessage{Role: "user", Content: userInput}); err != nil {
		return err
	}
	for {
		answer, err := f.call(ctx)
		if err != nil {
			return err
		}
		if err := f.keep(answer); err != nil {
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
			if err := f.keep(floorMessage{Role: "tool", ToolCallID: c.ID, Content: in.Text}); err != nil {
				return err
			}
		}
	}
}

// keep appends a message and waits until it is on disk.
func (f *floor) keep(m floorMessage) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := f.file.Write(append(line, '\n')); err != nil {
		return err
	}
	f.history = append(f.history, m)
	return f.file.Sync()
}

// call asks the model.
func (f *floor) call(ctx context.Context) (floorMessage, error) {
	body, err := json.Marshal(struct {
		Model    string         `json:"model"`
		Messages []floorMessage `json:"messages"`
		Stream   bool           `json:"stream"`
	}{"two", f.history, f.stream})
	if err != nil {
		return floorMessage{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return floorMessage{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return floorMessage{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return floorMessage{}, fmt.Errorf("the model server answered %s", resp.Status)
	}
	if f.stream {
		return streamed(resp.Body)
	}
	var whole struct {
		Choices []struct {
			Message floorMessage `json:"message"`
		} `json:"choices"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&whole); err != nil {
		return floorMessage{}, err
	}
	_, _ = io.Copy(io.Discard, resp.Body) // the connection is used again
	if len(whole.Choices) != 1 {
		return floorMessage{}, fmt.Errorf("the model server gave %d choices", len(whole.Choices))
	}
	return whole.Choices[0].Message, nil
}

// streamed joins the chunks of an answer with one call at most.
func streamed(body io.Reader) (floorMessage, error) {
	m := floorMessage{Role: "assistant"}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta floorMessage `json:"delta"`
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

func (m *floorMessage) join(delta floorMessage) {
	m.Content += delta.Content
	for _, c := range delta.ToolCalls {
		if len(m.ToolCalls) == 0 {
			m.ToolCalls = []floorCall{{Type: "function"}}
		}
		all := &m.ToolCalls[0]
		all.ID += c.ID
		all.Function.Name += c.Function.Name
		all.Function.Arguments += c.Function.Arguments
	}
}
