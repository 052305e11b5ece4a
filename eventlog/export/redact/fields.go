package redact

import (
	"reflect"

	"github.com/reprise-dev/reprise/messages"
)

// class is what a field of a type string is to a redaction.
type class int

const (
	text  class = iota // anything that people, models and tools have written
	name               // an id or an address: equal ones must stay equal
	word               // what this program branches on, or a name of a definition
	hash               // of a definition
	state              // a hash of what a model was sent up to here
	trace              // a trace context
)

// classes are those of fields by their JSON names. What is absent is text, so that a field that is
// added is redacted until it stands here.
var classes = map[string]class{
	"type": word, "role": word, "detail": word, "finish": word, "by": word, "command": word, "decision": word,
	"hook": word, "tool": word, "name": word, "model": word, "from": word, "to": word, "provider": word,
	"tool_choice": word, "how": word, "for": word, "cron": word, "tz": word, "args_hash": word, "tools": word,

	"id": name, "input": name, "inputs": name, "key": name, "agent": name, "parent": name, "child": name,
	"timer": name, "reply": name, "node": name, "account": name, "fork": name, "begin": name,

	"definition": hash,

	"digest": state,
}

// exceptions are classes by the path of a field.
var exceptions = map[string]class{
	"agent.imported.source":        name,
	"agent.imported.redacted":      word,
	"cause.by":                     text,
	"child.decided.person.name":    text,
	"timer.set.input.name":         name,
	"turn.paused.reason":           word,
	"turn.failed.reason":           word,
	"child.failed.reason":          word,
	"model.requested.instructions": state,
	"model.requested.request":      state,
}

// wordsOfJSON are names in definitions, and in the items of providers, whose values are words; namesOfJSON
// are those whose values are ids.
var (
	wordsOfJSON = map[string]bool{
		"type": true, "role": true, "status": true, "name": true, "object": true, "model": true, "kind": true,
		"fallbacks": true, "tool_choice": true, "stop_on": true, "hooks": true, "on_unknown": true, "agent": true, "required": true,
	}
	namesOfJSON = map[string]bool{"id": true, "call_id": true, "seen": true}
)

// classOf returns the class of the field of that type at a path.
func classOf(t reflect.Type, root string, path []string) class {
	switch {
	case t == reflect.TypeFor[messages.TurnID](), t == reflect.TypeFor[messages.CallID]():
		return name
	case t == reflect.TypeFor[messages.TraceContext]():
		return trace
	case t != reflect.TypeFor[string]():
		return word
	}
	if len(path) == 0 {
		return text
	}
	full := root
	for _, p := range path {
		full += "." + p
	}
	if c, ok := exceptions[full]; ok {
		return c
	}
	return classes[path[len(path)-1]]
}
