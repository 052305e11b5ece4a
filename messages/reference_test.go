package messages

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages/reftest"
)

// reference is where the pages are that the tests of this file write with -update.
const reference = "../docs/reference/"

// usual are the texts of fields that mean the same wherever they stand.
var usual = map[string]string{
	"id":      "The idempotency key of the command. Without it the header `Reprise-Id` is used, else one is made.",
	"turn":    "The turn.",
	"step":    "The step of the turn, from 1.",
	"call":    "The call.",
	"attempt": "The attempt, from 1.",
	"tool":    "The name of the tool.",
	"model":   "The model, as `provider/model`.",
	"child":   "The full address of the child.",
	"input":   "The id of the input.",
	"inputs":  "The ids of the inputs.",
	"reason":  "Why, in words for a person.",
	"message": "The same in words for a person.",
	"usage":   "The tokens that were used.",
	"steps":   "How many model calls the turn has made.",

	"cost_nanos": "The cost by the price table, in billionths of its unit. 0 without a price.",
	"tokens":     "Tokens, input and output together.",
	"definition": "The SHA-256 of the agent's definition, in hex.",
}

// eventGroups are the headings of events.md, each with the first tokens of the types below it.
var eventGroups = []struct {
	heading  string
	prefixes []string
}{
	{"Agents", []string{"agent"}},
	{"Inputs and commands", []string{"input", "command"}},
	{"Turns", []string{"turn"}},
	{"Model calls", []string{"model"}},
	{"Tool calls", []string{"tool"}},
	{"Approvals", []string{"approval"}},
	{"Children", []string{"child"}},
	{"Forks", []string{"fork", "tools"}},
	{"State and hooks", []string{"state", "hook"}},
	{"Budgets", []string{"budget"}},
	{"Timers", []string{"timer"}},
	{"Context compaction", []string{"compaction", "history"}},
}

// traitTexts are what the page says of the events with a trait.
var traitTexts = []struct {
	trait Trait
	text  string
}{
	{EndsInput, "It is the terminal event of the inputs that it names."},
	{Replied, "It is sent to the reply subject of the input."},
	{CountsUse, "It counts against the budgets of the turn and the agent."},
	{Public, "It is never encrypted."},
}

// docs/reference/events.md describes each event as its doc comments do.
func TestReferenceOfEvents(t *testing.T) {
	p := reftest.NewPage(t, reftest.Parse(t, "."))
	p.Usual, p.Elsewhere = usual, map[string]string{"messages.Code": "errors.md#codes"}
	examples := eventExamples(t)
	var b strings.Builder
	described := 0
	for _, group := range eventGroups {
		fmt.Fprintf(&b, "## %s\n\n", group.heading)
		for _, ev := range Events() {
			prefix, _, _ := strings.Cut(ev.EventType(), ".")
			if slices.Contains(group.prefixes, prefix) {
				described++
				b.WriteString(eventSection(p, ev, examples[ev.EventType()]))
			}
		}
	}
	if described != len(Events()) {
		t.Errorf("events described: got %d, want %d: add the new prefix to eventGroups", described, len(Events()))
	}
	reftest.Hold(t, reference+"events.md", "events", b.String(), *update)
	reftest.Hold(t, reference+"events.md", "objects", p.Shared(), *update)
}

// eventSection describes one event.
func eventSection(p *reftest.Page, ev Event, example string) string {
	name := reflect.TypeOf(ev).Name()
	var b strings.Builder
	text := p.Describe("messages." + name)
	for _, t := range traitTexts {
		if TraitsOf(ev.EventType())&t.trait != 0 {
			text += " " + t.text
		}
	}
	fmt.Fprintf(&b, "### %s\n\n%s\n\n", ev.EventType(), reftest.Wrap(text))
	fmt.Fprintf(&b, "Schema version %d. In Go: `messages.%s`.\n\n%s\n", VersionOf(ev.EventType()), name, p.Table("messages."+name))
	if example != "" {
		fmt.Fprintf(&b, "```json\n%s\n```\n\n", example)
	}
	return b.String()
}

// eventExamples returns the data of an event of each type, from the stories that the views of nodes
// are held to.
func eventExamples(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../cluster/testdata/views/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("stories: got %d files, error %v", len(files), err)
	}
	examples := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range storedEvent.FindAllSubmatch(text, -1) {
			var line struct {
				Type string
				Data json.RawMessage
			}
			if json.Unmarshal(m[1], &line) != nil {
				continue
			}
			if betterExample(line.Data, examples[line.Type]) {
				examples[line.Type] = string(line.Data)
			}
		}
	}
	return examples
}

// betterExample reports whether data shows more fields with a value than old, or is shorter.
func betterExample(data json.RawMessage, old string) bool {
	fields := func(b []byte) (n int) {
		var m map[string]json.RawMessage
		_ = json.Unmarshal(b, &m) // an empty one has no fields
		for _, v := range m {
			if !slices.Contains([]string{`""`, "null", "[]", "{}", "0", `{"input_tokens":0,"output_tokens":0}`}, string(v)) {
				n++
			}
		}
		return n
	}
	has, had := fields(data), fields([]byte(old))
	if old != "" && len(old) <= longExample && len(data) > longExample {
		return false
	}
	return has > had || has == had && len(data) < len(old)
}

var storedEvent = regexp.MustCompile(`(?m)^events \d+ (\{.*\})$`)

// longExample is how many bytes make an example hard to read.
const longExample = 330

// docs/reference/subjects.md describes each command as its doc comments do, and names each header and
// chunk.
func TestReferenceOfSubjects(t *testing.T) {
	source := reftest.Parse(t, ".")
	p := reftest.NewPage(t, source)
	p.Usual = map[string]string{"reason": "Why, for the log."}
	for name, text := range usual {
		if p.Usual[name] == "" {
			p.Usual[name] = text
		}
	}
	p.Elsewhere = onEventsPage
	sections := func(from Source) string {
		var b strings.Builder
		for _, c := range Commands() {
			if commandsByType[c.CommandType()].from == from {
				name := "messages." + reflect.TypeOf(c).Name()
				fmt.Fprintf(&b, "### %s\n\n%s\n\n%s\n", c.CommandType(), reftest.Wrap(p.Describe(name)), p.Table(name, "for", "person"))
			}
		}
		return b.String()
	}
	page := reference + "subjects.md"
	reftest.Hold(t, page, "input", p.Table("messages.Input")+"\nOptions:\n\n"+p.Table("messages.InputOptions"), *update)
	reftest.Hold(t, page, "answer", p.Table("messages.Answer"), *update)
	reftest.Hold(t, page, "commands", sections(FromCtl)+"### Limits of a resume\n\n"+p.Table("messages.LimitOverrides"), *update)
	reftest.Hold(t, page, "peers", strings.ReplaceAll(sections(FromAgent), "### ", "#### "), *update)
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range source.Consts("messages") {
		if (strings.HasPrefix(name, "Header") || strings.HasPrefix(name, "Chunk")) && !strings.Contains(string(b), "`"+value+"`") {
			t.Errorf("%s: got no %s, want every header and chunk (%s)", page, value, name)
		}
	}
}

// onEventsPage are the objects of commands that events.md describes.
var onEventsPage = map[string]string{
	"messages.Code": "errors.md#codes", "messages.Error": "errors.md#codes", "messages.LimitOverrides": "#limits-of-a-resume",
	"messages.InputOptions": "events.md#input-options", "messages.ForkChanges": "events.md#fork-changes", "messages.Blob": "events.md#blob",
	"messages.Policy": "events.md#policy", "messages.Content": "events.md#content", "messages.Outcome": "events.md#outcome",
	"messages.Disposition": "events.md#disposition", "messages.Parent": "events.md#parent", "messages.ReportWhat": "events.md#report-what",
	"messages.Wait": "events.md#wait", "messages.Usage": "events.md#usage",
}

// docs/reference/errors.md has a line for each code, with its number and whether a retry can help, and
// one for each reason of a failed turn.
func TestReferenceOfErrors(t *testing.T) {
	p := reftest.NewPage(t, reftest.Parse(t, "."))
	page := reference + "errors.md"
	reftest.Hold(t, page, "model failures", p.Values("messages.ModelFailure"), *update)
	reftest.Hold(t, page, "tool failures", p.Values("messages.ToolFailure"), *update)
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"| `internal` | 500 | no | "}
	for code, is := range codes {
		again := "no"
		if is.temporary {
			again = "yes"
		}
		want = append(want, fmt.Sprintf("| `%s` | %d | %s | ", code, is.status, again))
	}
	for _, reason := range []string{FailedModel, FailedRestarts, FailedHook, string(LimitSteps), string(LimitTokens), string(LimitCost), string(LimitDuration)} {
		want = append(want, "| `"+reason+"` | ")
	}
	for _, line := range want {
		if !strings.Contains(string(b), "\n"+line) {
			t.Errorf("%s: got no line that begins with %q, want one", page, line)
		}
	}
}
