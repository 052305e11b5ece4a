package pagetest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/cmd/internal/archtest"
)

// phrases may not stand in the prose of a page, beside those of comments; beside each, what reads better.
var phrases = []archtest.Phrase{
	{Pattern: `\bknows\b`, Better: "has, holds, is configured with"},
	{Pattern: `\banything else\b`, Better: "name it"},
	{Pattern: `\bby itself\b`, Better: "automatically, alone"},
	{Pattern: `\bof (which|whom) there (is|are|was|were)\b`, Better: "rewrite the sentence"},
	{Pattern: `\bwhat is \w+ is \w+\b`, Better: "rewrite the sentence"},
}

// terms are standard terms that hold a word of the phrases, and a word that only code may not have.
var terms = regexp.MustCompile(`(?i)\bdead[ -]?\s*letters?\b|\bletters (and|or) digits\b|letters, digits|\b(capital|upper-case|lower-case) letters?\b|\bspends\b|\broom\b|\b(a|its|the) floor\b`)

// allowed are phrases that a page may have, each with the reason.
var allowed = []struct{ page, phrase, why string }{}

// TestWords holds the prose of each page to the words of the field. Code, and what programs print, is not prose.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		if p.isDoc() {
			faults(t, p, p.badWords())
		}
	}
}

// badWords are the phrases that a page may not have.
func (p *page) badWords() (bad []problem) {
	prose := terms.ReplaceAllStringFunc(p.prose(), func(s string) string { return strings.Repeat(" ", len(s)) })
	for _, phrase := range wordPatterns {
		for _, at := range phrase.pattern.FindAllStringIndex(prose, -1) {
			hit := strings.Join(strings.Fields(prose[at[0]:at[1]]), " ")
			if !slices.ContainsFunc(allowed, func(a struct{ page, phrase, why string }) bool {
				return a.page == p.name && strings.EqualFold(a.phrase, hit)
			}) {
				bad = append(bad, problem{lineAt(prose, at[0]), fmt.Sprintf("%q: better %s", hit, phrase.better)})
			}
		}
	}
	slices.SortStableFunc(bad, func(a, b problem) int { return a.line - b.line })
	return bad
}

// wordPatterns are the phrases of comments and of pages. A space in one is a line break as well.
var wordPatterns = func() (all []struct {
	pattern *regexp.Regexp
	better  string
}) {
	for _, p := range append(slices.Clone(archtest.Phrases), phrases...) {
		all = append(all, struct {
			pattern *regexp.Regexp
			better  string
		}{regexp.MustCompile(`(?i)` + strings.ReplaceAll(p.Pattern, " ", `(?: +| *\n[ >]*)`)), p.Better})
	}
	return all
}()

// TestAllowedPhrases holds that each exception has a reason and is needed.
func TestAllowedPhrases(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, a := range allowed {
		at := slices.IndexFunc(all, func(p *page) bool { return p.name == a.page })
		if a.why == "" || at < 0 || !strings.Contains(strings.ToLower(strings.Join(strings.Fields(all[at].prose()), " ")), strings.ToLower(a.phrase)) {
			t.Errorf("the exception for %q in %s has no reason, or it is not there", a.phrase, a.page)
		}
	}
}
