package projections

import (
	"bytes"
	"encoding/json"
	"maps"

	"github.com/reprise-dev/reprise/messages"
)

// State is an agent's own data: the fold of its merge patches (RFC 7396) since
// it was last cleared. The zero value is {}.
type State struct {
	// value is the decoded state once a patch has come; numbers are
	// json.Number. It is never changed in place: a patch makes new maps along
	// its paths, so that older values stay what they were.
	value   any
	patched bool
	// baseline is what a clear takes a fork back to, as JSON. Empty: it is {}.
	baseline string
}

// Apply folds event number n. A patch that is no JSON changes nothing; no endpoint accepts one.
func (s *State) Apply(_ messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.StatePatched:
		if patch, ok := decodeJSON(ev.Patch); ok {
			s.value, s.patched = mergePatch(s.current(), patch), true
		}
	case messages.AgentForked:
		s.baseline = ""
		if s.patched {
			s.baseline = string(s.JSON())
		}
	default:
		if messages.Is(ev.EventType(), messages.EndsAgent) {
			*s = State{}
		} else if messages.Is(ev.EventType(), messages.ClearsAgent) {
			value, is := decodeJSON([]byte(s.baseline))
			*s = State{value: value, patched: is, baseline: s.baseline}
		}
	}
}

func (s *State) current() any {
	if !s.patched {
		return map[string]any{}
	}
	return s.value
}

// JSON returns the state in its canonical form: keys sorted, no spaces, numbers as they were
// written. It belongs to the caller.
func (s *State) JSON() json.RawMessage { return encodeJSON(s.current()) }

// decodeJSON reads one JSON value without losing digits of its numbers.
func decodeJSON(raw []byte) (v any, ok bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(&v)
	return v, err == nil
}

// encodeJSON writes what decodeJSON read; maps come out with their keys sorted.
func encodeJSON(v any) json.RawMessage {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null") // what was decoded encodes
	}
	return bytes.TrimSpace(buf.Bytes())
}

// mergePatch implements MergePatch of RFC 7396, section 2. It does not change target.
func mergePatch(target, patch any) any {
	members, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	old, _ := target.(map[string]any)
	merged := make(map[string]any, len(old)+len(members))
	maps.Copy(merged, old)
	for name, value := range members {
		if value == nil {
			delete(merged, name)
		} else {
			merged[name] = mergePatch(merged[name], value)
		}
	}
	return merged
}

// valueBytes is about what a value of the state takes in memory beside its text, in bytes.
const valueBytes = 48

// Size estimates how many bytes of memory the state takes, by walking all of it.
func (s *State) Size() int { return sizeOfValue(s.value) + len(s.baseline) }

func sizeOfValue(v any) int {
	size := valueBytes
	switch v := v.(type) {
	case string:
		size += len(v)
	case json.Number:
		size += len(v)
	case []any:
		for _, e := range v {
			size += sizeOfValue(e)
		}
	case map[string]any:
		for name, e := range v {
			size += len(name) + sizeOfValue(e)
		}
	}
	return size
}
