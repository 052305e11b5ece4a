// Package redact replaces texts of an agent, such as addresses and card numbers, so that its events
// can be given to others and still fit together.
//
// A rule is a pattern, which is searched for in all texts, or a path, whose values are
// searched for in all texts. What is found is replaced by [rule:3f2a9c1b44de]: the name of the
// rule and a hash with a random key, so that equal values stay equal within one export and
// cannot be guessed. JSON stays JSON, also inside of texts. Ids and addresses get
// rule-3f2a9c1b44de, the same everywhere. Event types, numbers, times, names of tools and models, and
// all words that this program branches on stay as they are. Hashes of what was changed change with it.
//
// # Guarantees
//
//   - What a rule finds is in no text, id, name in JSON or blob that comes out, and in no text of a
//     definition.
//   - Events stay events: the same types, in the same order, under the same numbers.
//   - The same text is replaced by the same one, whatever it is found in.
//
// What is not found: a value that is split over several texts, or encoded in a way other than
// JSON, such as base64, a picture, or a cut text.
package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/messages"
)

// Rule says what is replaced. Exactly one of Pattern and Path is set.
type Rule struct {
	// Name stands in what is put in its place: letters, digits, - and _, at most 32.
	Name string
	// Pattern finds texts.
	Pattern *regexp.Regexp
	// Path names values by the type of an event (or cause, definition, or * for anything), its field,
	// and what is below that, with dots between, such as tool.requested.arguments.card. Elements of lists
	// have the path of their list. Every value there, of all events, is replaced wherever it is found in a
	// text; one of fewer than four characters only where it is the whole value of the same name.
	Path string
}

// shortest is how long a value of a path must be to be searched for inside of texts.
const shortest = 4

var ruleName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// Redactor replaces what its rules find. Agents that are given to it one after another have equal
// values replaced by equal ones. Not safe for concurrent use.
type Redactor struct {
	rules  []Rule
	paths  []pathRule
	key    []byte
	counts map[string]int
	values map[string]string    // found at paths → rule
	long   []string             // the values that are searched for in texts, longest first
	short  map[[2]string]string // name and value → rule
	hashes map[string]string    // of what was changed, by those before it
	// edits is how many texts were changed so far, begun how many when the agent began.
	edits, begun int
}

// New returns a Redactor with these rules.
func New(rules []Rule) (*Redactor, error) {
	r := &Redactor{rules: rules, key: make([]byte, 32), counts: make(map[string]int), hashes: make(map[string]string), values: make(map[string]string), short: make(map[[2]string]string)}
	_, _ = rand.Read(r.key) // never fails
	for _, rule := range rules {
		if !ruleName.MatchString(rule.Name) {
			return nil, fmt.Errorf("rule %q: a name has 1 to 32 of A-Z a-z 0-9 _ -", rule.Name)
		}
		if _, twice := r.counts[rule.Name]; twice {
			return nil, fmt.Errorf("there are two rules %q: give each a name of its own", rule.Name)
		}
		r.counts[rule.Name] = 0
		switch {
		case (rule.Pattern == nil) == (rule.Path == ""):
			return nil, fmt.Errorf("rule %q: give it a pattern or a path, one of them", rule.Name)
		case rule.Pattern != nil && rule.Pattern.MatchString(""):
			return nil, fmt.Errorf("rule %q: its pattern matches the empty text", rule.Name)
		case rule.Path != "":
			p, err := parsePath(rule)
			if err != nil {
				return nil, err
			}
			r.paths = append(r.paths, p)
		}
	}
	if len(rules) == 0 {
		return nil, errors.New("there are no rules")
	}
	return r, nil
}

// Begin begins an agent, and returns its address as it is to be written. An address that would not
// be one any more is an error.
func (r *Redactor) Begin(a messages.AgentID) (messages.AgentID, error) {
	r.hashes, r.begun = make(map[string]string), r.edits
	full := r.name(a.Full())
	as, err := messages.ParseAgentID(full)
	if err == nil && as.Full() != full {
		err = errors.New("it would have fewer parts")
	}
	if err != nil {
		return a, fmt.Errorf("a rule finds something in the address %s that goes over several parts of it, or makes it too long: %w", a, err)
	}
	return as, nil
}

// Names returns the names of the rules.
func (r *Redactor) Names() (names []string) {
	for _, rule := range r.rules {
		names = append(names, rule.Name)
	}
	return names
}

// Counts returns how many texts each rule has replaced so far, of all agents.
func (r *Redactor) Counts() map[string]int { return maps.Clone(r.counts) }

// Unmatched returns the names of the rules that have found nothing.
func (r *Redactor) Unmatched() []string {
	return slices.DeleteFunc(r.Names(), func(name string) bool { return r.counts[name] > 0 })
}

// keyed returns a hash of text, in hex, which only this Redactor can make.
func (r *Redactor) keyed(text string) string {
	h := hmac.New(sha256.New, r.key)
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// Digest returns what stands for the hash of something whose content is not known.
func (r *Redactor) Digest(d messages.Digest) messages.Digest {
	return messages.Digest(r.keyed(string(d)))
}

// likeHash returns what stands for a hash in hex, of the same length.
func (r *Redactor) likeHash(sum string) string { return r.keyed(sum)[:min(len(sum), 2*sha256.Size)] }

// keyedHex is how much of a hash stands in what replaces a text.
const keyedHex = 12

func (r *Redactor) inText(rule, found string) string {
	return "[" + rule + ":" + r.keyed(found)[:keyedHex] + "]"
}

func (r *Redactor) inName(rule, found string) string { return rule + "-" + r.keyed(found)[:keyedHex] }

// span is a part of a text that a rule has found.
type span struct {
	from, to int
	rule     string
}

// spans returns what the rules find in the value s of that name, in order and without overlaps, and
// counts it.
func (r *Redactor) spans(name, s string) (found []span) {
	if rule, ok := r.short[[2]string{name, s}]; ok {
		found = append(found, span{0, len(s), rule})
	}
	for _, v := range r.long {
		for at := 0; ; {
			i := strings.Index(s[at:], v)
			if i < 0 {
				break
			}
			found = append(found, span{at + i, at + i + len(v), r.values[v]})
			at += i + len(v)
		}
	}
	for _, rule := range r.rules {
		if rule.Pattern == nil {
			continue
		}
		for _, at := range rule.Pattern.FindAllStringIndex(s, -1) {
			if at[0] < at[1] {
				found = append(found, span{at[0], at[1], rule.Name})
			}
		}
	}
	for _, f := range found {
		r.counts[f.rule]++
	}
	return merged(found)
}

// merged orders spans and joins those that overlap, under the first one's rule.
func merged(spans []span) (list []span) {
	slices.SortStableFunc(spans, func(a, b span) int { return a.from - b.from })
	for _, s := range spans {
		if last := len(list) - 1; last >= 0 && s.from < list[last].to {
			list[last].to = max(list[last].to, s.to)
		} else {
			list = append(list, s)
		}
	}
	return list
}

// replaced returns the value s of that name with what rules find in it replaced by what with returns.
func (r *Redactor) replaced(name, s string, with func(rule, found string) string) string {
	found := r.spans(name, s)
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		b.WriteString(s[at:f.from])
		b.WriteString(with(f.rule, s[f.from:f.to]))
		at = f.to
	}
	b.WriteString(s[at:])
	r.edits++
	return b.String()
}

// trace returns a trace context without a state in which rules find something: what another program has
// put there cannot be replaced in part. Its ids are numbers that were drawn at random, and stay.
func (r *Redactor) trace(t messages.TraceContext) messages.TraceContext {
	if r.name(t.State()) != t.State() {
		return messages.TraceContext(t.Parent())
	}
	return t
}

// name returns an id or an address with what rules find in it replaced.
func (r *Redactor) name(s string) string { return r.replaced("", s, r.inName) }
