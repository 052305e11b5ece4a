//go:build unix

package clustertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The kinds of agents that every node serves. Workers have all tools, helpers all
// but [Ask].
const (
	Worker = "worker"
	Helper = "helper"
)

// The words of a plan, each a tool. Ask is written with the plan of the helper that
// is asked, its steps with commas between: ask:pay,look.
const (
	Pay  = "pay"  // rerun: the shop takes each key once
	Once = "once" // pause: the shop counts every visit
	Look = "look" // read_only
	Sign = "sign" // rerun, and a person must approve it
	Ask  = "ask"  // asks a helper
)

// plan is the tools that an input wants, step by step; those of one step, joined by
// a plus, are called at once.
type plan [][]string

// parsePlan reads a plan such as "pay look+look".
func parsePlan(text string) (p plan) {
	for _, step := range strings.Fields(text) {
		p = append(p, strings.Split(step, "+"))
	}
	return p
}

// Text returns the text of an input with this id and a plan such as "pay look+look". What the
// shop receives names the id in the text.
func Text(id, plan string) string { return strings.TrimSpace("do " + id + ": " + plan) }

// Output is what the turn of such an input says in the end, if all goes well.
func Output(id, plan string) string { return parsePlan(plan).output(id) }

func (p plan) output(id string) string {
	words := []string{"done " + id + ":"}
	for position, word := range slices.Concat(p...) {
		if text, ok := below(word, id, position); ok {
			words = append(words, "("+outputOf(text)+")")
			continue
		}
		words = append(words, result(word, id, position))
	}
	return strings.Join(words, " ")
}

// result is what the shop says.
func result(tool, id string, position int) string { return fmt.Sprintf("%s:%s:%d", tool, id, position) }

// below is the text of the task that a word has for a helper, if it has one.
func below(word, id string, position int) (text string, ok bool) {
	tool, rest, _ := strings.Cut(word, ":")
	return Text(fmt.Sprintf("%s.%d", id, position), strings.ReplaceAll(rest, ",", " ")), tool == Ask
}

// readText returns the id and the plan in an input's text.
func readText(text string) (id string, p plan) {
	rest, ok := strings.CutPrefix(text, "do ")
	if !ok {
		return "", nil
	}
	id, rest, _ = strings.Cut(rest, ":")
	return id, parsePlan(rest)
}

func outputOf(text string) string {
	id, p := readText(text)
	return p.output(id)
}

// order is the arguments of a tool that goes to the shop.
type order struct {
	Input    string `json:"input"`
	Position int    `json:"position"`
}

// arguments are those of a word's call.
func arguments(word, id string, position int) (tool, text string) {
	var v any = order{id, position}
	tool = word
	if task, ok := below(word, id, position); ok {
		tool, v = Ask, struct {
			Input string `json:"input"`
		}{task}
	}
	b, _ := json.Marshal(v) // strings and a number
	return tool, string(b)
}
