package turntest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/messages"
)

// shownFields are the fields of events that a transcript shows, in this order.
var shownFields = []string{"agent", "fork", "input", "disposition", "turn", "continues", "epoch", "hook", "point", "decision", "call", "calls", "tool", "of", "on_unknown", "attempt", "dry", "key",
	"timer", "for", "at", "cron", "tz", "ran_ms", "missed", "refused", "step", "scope", "limit", "inputs", "max_steps", "limits", "steps", "from", "to", "model", "tool_choice", "request",
	"command", "by", "person", "remember", "kind", "reason", "message", "retry_at", "shown", "expires_at", "text", "output", "blob", "finish", "answer", "arguments", "args_hash", "withheld", "note", "patch",
	"child", "parent", "n", "waiting", "waits", "how", "what", "upto", "dropped", "kept", "not_before", "detached", "busy", "tokens", "usage", "cost_nanos", "unknown", "deleted", "frames"}

// EventText returns the fields of an event, name=value each.
func EventText(ev messages.Event) string {
	raw, _ := json.Marshal(ev)
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	var b strings.Builder
	for _, name := range shownFields {
		value, ok := fields[name]
		if !ok || string(value) == "null" || string(value) == `""` && name != "text" {
			continue
		}
		if name == "key" && string(fields["attempt"]) == "1" {
			continue // it follows from turn and call, and matters only when it is used again
		}
		if short, ok := shortened[name]; ok {
			name, value = short(value)
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		} else if text == "" || text[0] == '"' || strings.ContainsAny(text, " \n") {
			text = strconv.Quote(text)
		}
		if name != "" {
			fmt.Fprintf(&b, " %s=%s", name, text)
		}
	}
	return b.String()
}

// shortened writes fields as a person would. A field that gets no name is left out.
var shortened = map[string]func(json.RawMessage) (string, json.RawMessage){
	"at":         shortTime("at"),
	"retry_at":   shortTime("retry_at"),
	"expires_at": shortTime("expires_at"),
	"not_before": shortTime("not_before"),
	"person": func(v json.RawMessage) (string, json.RawMessage) {
		var p messages.Person
		_ = json.Unmarshal(v, &p)
		return "person", quoted(p.Name)
	},
	"ran_ms": func(v json.RawMessage) (string, json.RawMessage) {
		ms, _ := time.ParseDuration(string(v) + "ms")
		return "ran", quoted(ms.String())
	},
	"input": func(v json.RawMessage) (string, json.RawMessage) {
		var timed messages.Input
		if json.Unmarshal(v, &timed) != nil {
			return "input", v
		}
		return "input", quoted(timed.ID + ": " + timed.Content.Text())
	},
	"cost_nanos": func(v json.RawMessage) (string, json.RawMessage) { return "cost", quoted(costText(v)) },
	"args_hash":  func(v json.RawMessage) (string, json.RawMessage) { return "args_hash", quoted(string(v[1:9]) + "…") },
	"child": func(v json.RawMessage) (string, json.RawMessage) {
		return "child", quoted(shortKey(strings.Trim(string(v), `"`)))
	},
	"parent":  shortParent,
	"waiting": shortWaiting,
	"limits":  func(v json.RawMessage) (string, json.RawMessage) { return "limits", quoted(limitsText(v)) },
	"usage": func(v json.RawMessage) (string, json.RawMessage) {
		var u messages.Usage
		if json.Unmarshal(v, &u) != nil || u == (messages.Usage{}) {
			return "", nil
		}
		return "usage", quoted(fmt.Sprintf("%d+%d", u.Input, u.Output))
	},
	"blob": func(v json.RawMessage) (string, json.RawMessage) {
		var b messages.Blob
		_ = json.Unmarshal(v, &b)
		return "blob", quoted(fmt.Sprintf("%s…+%d", b.SHA256[:8], b.Size))
	},
	// The model that every definition begins with is not shown.
	"model": func(v json.RawMessage) (string, json.RawMessage) {
		if string(v) == `"scripted/m"` {
			return "", nil
		}
		return "model", v
	},
	// The digest of a request is shown only where a hook has changed it.
	"request": func(v json.RawMessage) (string, json.RawMessage) {
		if len(v) == len(messages.DigestOf(nil))+2 {
			return "", nil
		}
		return "request", v
	},
}

func shortTime(name string) func(json.RawMessage) (string, json.RawMessage) {
	return func(v json.RawMessage) (string, json.RawMessage) {
		var at time.Time
		if json.Unmarshal(v, &at) != nil { // the event of a fork
			return name, v
		}
		return name, quoted(clock(at))
	}
}

func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s)
	return b
}

func costText(v json.RawMessage) string {
	var c messages.Cost
	_ = json.Unmarshal(v, &c)
	return c.String()
}

func limitsText(v json.RawMessage) string {
	var l messages.Limits
	_ = json.Unmarshal(v, &l)
	var parts []string
	for _, p := range []struct {
		set  bool
		text string
	}{
		{l.MaxSteps != 0, fmt.Sprint("max_steps:", l.MaxSteps)},
		{l.MaxTokens != 0, fmt.Sprint("max_tokens:", l.MaxTokens)},
		{l.MaxCost != 0, fmt.Sprint("max_cost:", l.MaxCost)},
		{l.MaxDuration != 0, fmt.Sprint("max_duration:", time.Duration(l.MaxDuration)*time.Millisecond)},
	} {
		if p.set {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ",")
}
