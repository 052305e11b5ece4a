package demo

import (
	"slices"

	"github.com/reprise-dev/reprise/messages"
)

// view is what a history means to the next answer.
type view struct {
	open  []string // what users said since the last answer
	fresh int      // where in open that begins which came after the last call
	calls []call   // made since the last answer
}

// call is a call and what came of it.
type call struct {
	name, arguments, output string
}

// look reads a history.
func look(items []messages.Item) view {
	var v view
	outputs := map[messages.CallID]string{}
	for _, item := range items {
		if item.Type == messages.ItemCallOutput {
			outputs[item.CallID] = item.Output
		}
	}
	for _, item := range items[answered(items):] {
		switch {
		case item.Type == messages.ItemCall:
			output, ok := outputs[item.CallID]
			if !ok {
				output = "no result"
			}
			v.calls = append(v.calls, call{item.Name, item.Arguments, output})
			v.fresh = len(v.open)
		case item.Type == messages.ItemMessage && item.Role == messages.RoleUser:
			v.open = append(v.open, said(item.Content))
		}
	}
	return v
}

// answered is where that begins which no answer has dealt with yet: after the
// last answer, and after a note that closed an older turn.
func answered(items []messages.Item) int {
	users := false
	for i, item := range slices.Backward(items) {
		if item.Type == messages.ItemRefusal {
			return i + 1
		}
		if item.Type != messages.ItemMessage {
			continue
		}
		switch item.Role {
		case messages.RoleUser:
			users = true
		case messages.RoleDeveloper:
			if users {
				return i + 1
			}
		case messages.RoleAssistant:
			if i+1 == len(items) || items[i+1].Type != messages.ItemCall { // else it only announced calls
				return i + 1
			}
		}
	}
	return 0
}

// said is a message as text, with a word on what is not.
func said(c messages.Content) string {
	text := c.Text()
	for _, p := range c {
		if p.Type == "image_url" {
			if text != "" {
				text += " "
			}
			text += "[an image, which the demo model cannot see]"
		}
	}
	return text
}
