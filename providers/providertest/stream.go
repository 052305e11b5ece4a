package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/providers/scripted"
)

var (
	eventStream = []string{"text/event-stream"}
	buffers     = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}
)

// stream writes one answer as events. It gathers them and flushes only where
// it waits, so that an answer without waits is one write.
type stream struct {
	a      Answer
	w      http.ResponseWriter
	number int
	buf    *[]byte
}

func (s *stream) release() {
	*s.buf = (*s.buf)[:0]
	buffers.Put(s.buf)
}

func (s *stream) run(ctx context.Context) error {
	if s.a.After <= 0 && s.gate(ctx) != nil {
		return errCut
	}
	if len(s.a.Data) > 0 {
		for _, d := range s.a.Data {
			s.add("data: ", d, "\n\n")
		}
		if s.a.Fault == Drop {
			_ = s.push()
			return errCut
		}
		return s.flush()
	}
	if s.a.as != nil {
		return s.imitate(ctx)
	}
	s.chunk(`{"role":"assistant"}`, "")
	if s.a.Reasoning != "" {
		s.chunk(`{"reasoning_content":`+quote(s.a.Reasoning)+`}`, "")
	}
	if err := s.text(ctx, func(piece string) { s.chunk(`{"content":`+quote(piece)+`}`, "") }); err != nil {
		return err
	}
	if s.a.Refusal != "" {
		s.chunk(`{"refusal":`+quote(s.a.Refusal)+`}`, "")
	}
	for _, f := range s.fragments() {
		s.chunk(f, "")
	}
	return s.end()
}

// imitate sends the answer as the imitated server words it.
func (s *stream) imitate(ctx context.Context) error {
	s.add(s.a.as.head()...)
	if err := s.text(ctx, func(piece string) { s.add(s.a.as.text(piece)...) }); err != nil {
		return err
	}
	s.add(s.a.as.rest()...)
	return s.end()
}

// text sends the pieces of the text, with their waits.
func (s *stream) text(ctx context.Context, send func(piece string)) error {
	pieces := s.a.Cut()
	for i, piece := range pieces {
		if i > 0 && s.a.Each > 0 {
			if s.push() != nil || wait(ctx, s.a.Each) != nil {
				return errCut
			}
		}
		send(piece)
		if i+1 == s.a.After && s.gate(ctx) != nil {
			return errCut
		}
	}
	if s.a.After > len(pieces) && s.gate(ctx) != nil {
		return errCut
	}
	return nil
}

// end sends the fault, or the finish reason, the usage and the end mark.
func (s *stream) end() error {
	switch s.a.Fault {
	case Drop:
		_ = s.push()
		return errCut
	case Truncate:
		return s.flush()
	case Garble:
		s.add("data: ", `{"choices":[{"delta":`, "\n\n")
	case Complain, Fail:
		s.add(s.a.complaint())
		return s.flush()
	}
	if s.a.as != nil {
		s.add(s.a.as.end()...)
		return s.flush()
	}
	s.chunk(`{}`, finish(s.a))
	if !s.a.NoUsage {
		s.add(`data: {"id":"chatcmpl-`, strconv.Itoa(s.number), `","object":"chat.completion.chunk","created":1,"model":`,
			quote(model(s.a)), `,"choices":[],"usage":`, usage(s.a), "}\n\n")
	}
	s.add("data: [DONE]\n\n")
	return s.flush()
}

func (a Answer) complaint() string {
	if a.as != nil {
		return a.as.complaint(a.Fault, a.Message)
	}
	return "data: " + string(a.errorBody(http.StatusInternalServerError)) + "\n\n"
}

func (s *stream) chunk(delta, finish string) {
	reason := "null"
	if finish != "" {
		reason = quote(finish)
	}
	s.add(`data: {"id":"chatcmpl-`, strconv.Itoa(s.number), `","object":"chat.completion.chunk","created":1,"model":`,
		quote(model(s.a)), `,"choices":[{"index":0,"delta":`, delta, `,"finish_reason":`, reason, "}]}\n\n")
}

func (s *stream) add(parts ...string) {
	for _, p := range parts {
		*s.buf = append(*s.buf, p...)
	}
}

// gate flushes and waits where the answer has a gate.
func (s *stream) gate(ctx context.Context) error {
	if s.a.Gate == nil {
		return nil
	}
	if err := s.push(); err != nil {
		return err
	}
	return s.a.Gate.Wait(ctx)
}

// push makes all so far leave for the client.
func (s *stream) push() error {
	if err := s.flush(); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

// flush hands all so far to the HTTP server, which may keep it a while.
func (s *stream) flush() error {
	_, err := s.w.Write(*s.buf)
	*s.buf = (*s.buf)[:0]
	return err
}

// fragments are the deltas of the calls, one after the other or taking turns.
func (s *stream) fragments() []string {
	calls := s.a.Calls
	perCall := make([][]string, len(calls))
	longest := 0
	for i, c := range calls {
		perCall[i] = s.fragmentsOf(i, c)
		longest = max(longest, len(perCall[i]))
	}
	var all []string
	if !s.a.Interleave {
		for _, f := range perCall {
			all = append(all, f...)
		}
		return all
	}
	for n := range longest {
		for _, f := range perCall {
			if n < len(f) {
				all = append(all, f[n])
			}
		}
	}
	return all
}

func (s *stream) fragmentsOf(i int, c scripted.Call) []string {
	id := quote(callID(s.number, i, c))
	index := `"index":` + strconv.Itoa(i) + `,`
	again := ""
	switch s.a.Index {
	case NullIndex:
		index, again = `"index":null,`, `"id":`+id+`,`
	case NoIndex:
		index, again = "", `"id":`+id+`,`
	}
	list := []string{`{"tool_calls":[{` + index + `"id":` + id + `,"type":"function","function":{"name":` + quote(c.Name) + `,"arguments":""}}]}`}
	pieces := 1
	if s.a.Interleave {
		pieces = 3
	}
	for _, piece := range (scripted.Step{Text: c.Arguments, Pieces: pieces}).Cut() {
		list = append(list, `{"tool_calls":[{`+index+again+`"function":{"arguments":`+quote(piece)+`}}]}`)
	}
	return list
}

// whole is the answer as one document.
func (a Answer) whole(number int) []byte {
	if len(a.Data) > 0 {
		return []byte(a.Data[0])
	}
	if a.as != nil {
		return a.as.document()
	}
	message := map[string]any{"role": "assistant", "content": a.Text}
	if a.Reasoning != "" {
		message["reasoning_content"] = a.Reasoning
	}
	if a.Refusal != "" {
		message["refusal"] = a.Refusal
	}
	var calls []map[string]any
	for i, c := range a.Calls {
		calls = append(calls, map[string]any{"id": callID(number, i, c), "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	b, _ := json.MarshalIndent(map[string]any{ // strings and numbers always marshal
		"id": "chatcmpl-" + strconv.Itoa(number), "object": "chat.completion", "model": model(a),
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish(a)}},
		"usage":   json.RawMessage(usage(a)),
	}, "", "  ")
	return b
}

func callID(number, i int, c scripted.Call) string {
	if c.ID != "" {
		return string(c.ID)
	}
	return "call_" + strconv.Itoa(number) + "_" + strconv.Itoa(i+1)
}

func model(a Answer) string {
	if a.Model != "" {
		return a.Model
	}
	return "test-model"
}

func finish(a Answer) string {
	switch {
	case a.Finish != "":
		return a.Finish
	case len(a.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func usage(a Answer) string {
	u := a.Usage
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		u.Input, u.Output, u.Input+u.Output, u.Cached, u.Reasoning)
}

// quote is s as a JSON string.
func quote(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			b, _ := json.Marshal(s) // strings always marshal
			return string(b)
		}
	}
	return `"` + s + `"`
}
