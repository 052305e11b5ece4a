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
}

// Apply folds event number n. A patch that is no JSON changes nothing; no door
// lets one in.
func (s *State) Apply(_ messages.EventNumber, ev messages.Event) {
	switch ev := ev.(type) {
	case messages.StatePatched:
		if patch, ok := decodeJSON(ev.Patch); ok {
			s.value, s.patched = mergePatch(s.current(), patch), true
		}
	case messages.AgentCleared, messages.AgentDeleted:
		*s = State{}
	}
}

func (s *State) current() any {
	if !s.patched {
		return map[string]any{}
	}
	return s.value
}

// JSON is the state in its canonical form: keys sorted, no spaces, numbers as
// they were written. It belongs to the caller.
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

// mergePatch is MergePatch of RFC 7396, section 2. It leaves target as it is.
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
