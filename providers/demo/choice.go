package demo

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/reprise-dev/reprise/providers"
)

// chosen are the calls to make under a request's tool choice.
func (v *view) chosen(choice string, tools []kit) ([]intent, error) {
	switch choice {
	case "":
		return v.todo(tools), nil
	case "none":
		v.barred = true
		return nil, nil
	case "required":
		if calls := v.todo(tools); len(calls) > 0 {
			return calls, nil
		}
		if len(tools) > 0 {
			return []intent{v.forced(tools)}, nil
		}
	}
	for i, k := range tools {
		if k.name != choice {
			continue
		}
		if calls := v.todo(tools[i : i+1]); len(calls) > 0 {
			return calls, nil
		}
		return []intent{v.forced(tools[i : i+1])}, nil
	}
	return nil, &providers.Error{Kind: providers.BadRequest, Message: "tool_choice is " + strconv.Quote(choice) + ", and the request has no such tool"}
}

// forced is a call that nobody asked for: of the first tool that needs no
// argument, else of the first whose arguments the newest message can give, else
// of the first.
func (v *view) forced(tools []kit) intent {
	text := ""
	if len(v.open) > 0 {
		text = v.open[len(v.open)-1]
		text = strings.ToValidUTF8(text[:min(len(text), maxText)], " ")
	}
	for _, from := range []string{"", text} {
		for _, k := range tools {
			if _, missing := fill(k, from, nil); missing == nil {
				arguments, _ := fill(k, text, nil)
				return intent{tool: k.name, arguments: arguments}
			}
		}
	}
	arguments, missing := fill(tools[0], text, nil)
	return intent{tool: tools[0].name, arguments: invent(arguments, missing, text)}
}

// invent adds what is missing to the arguments of a forced call.
func invent(arguments string, missing []property, text string) string {
	all := map[string]any{}
	if json.Unmarshal([]byte(arguments), &all) != nil {
		return arguments // fill writes objects
	}
	for _, p := range missing {
		all[p.name] = p.madeUp(text)
	}
	made, err := json.Marshal(all)
	if err != nil { // what came from JSON goes back to it
		return arguments
	}
	return string(made)
}

// madeUp is a value of the argument's type.
func (p property) madeUp(text string) any {
	if len(p.enum) > 0 {
		return p.enum[0]
	}
	switch p.kind {
	case "number", "integer":
		return 1
	case "boolean":
		return false
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return text
}
