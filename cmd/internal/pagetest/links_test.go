package pagetest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// links are the ways in which a page names another file.
var links = []*regexp.Regexp{
	regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`),
	regexp.MustCompile(`(?m)^\s*\[[^\]]+\]:\s+(\S+)`),
	regexp.MustCompile(`(?:href|src|srcset)="([^"]+)"`),
}

// machine are signs of the machine that a page was written on.
var machine = []string{"/root/", "/home/", "/Users/", "/work/", "/tmp/bash", "/tmp/rv"}

// TestLinks holds that links between our pages lead to a file and, where they name one, to a heading of
// it, and that no page names a place that only its author has.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := make(map[string]*page)
	for _, p := range pages(t) {
		all[p.name] = p
	}
	for _, p := range all {
		for _, found := range p.badLinks(func(file string) (*page, bool) {
			if target := all[file]; target != nil {
				return target, true
			}
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
			return nil, err == nil
		}) {
			t.Errorf("%s:%d: %s", p.name, found.line, found.text)
		}
	}
}

// badLinks are the links of a page that lead nowhere. Lookup returns the page of a name, or that there is
// such a file.
func (p *page) badLinks(lookup func(file string) (*page, bool)) (bad []problem) {
	add := func(line int, text string) { bad = append(bad, problem{line, text}) }
	for i, line := range p.lines {
		for _, sign := range machine {
			if strings.Contains(line, sign) {
				add(i+1, sign+" is a place on one machine")
			}
		}
		if p.code[i] {
			continue
		}
		for _, target := range targets(line) {
			file, anchor, _ := strings.Cut(target, "#")
			if strings.Contains(file, ":") {
				continue
			}
			to, ok := p, true
			if file != "" {
				to, ok = lookup(path.Join(path.Dir(p.name), file))
			}
			switch {
			case !ok:
				add(i+1, "the link to "+target+" leads nowhere")
			case anchor != "" && to != nil && !to.anchors()[anchor]:
				add(i+1, "the link to "+target+" leads to no heading of "+to.name)
			}
		}
	}
	return bad
}

// codeSpan is code in a line.
var codeSpan = regexp.MustCompile("`[^`]*`")

// targets are what the links of a line name.
func targets(line string) (all []string) {
	line = codeSpan.ReplaceAllString(line, "x")
	for _, pattern := range links {
		for _, m := range pattern.FindAllStringSubmatch(line, -1) {
			all = append(all, m[1])
		}
	}
	return all
}

var (
	heading  = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	htmlID   = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	linkText = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// anchors are the ids that GitHub gives to the headings of a page: in lower case, with hyphens for
// spaces and without punctuation, and a number behind one that was there before.
func (p *page) anchors() map[string]bool {
	all := make(map[string]bool)
	times := make(map[string]int)
	for i, line := range p.lines {
		if p.code[i] {
			continue
		}
		for _, m := range htmlID.FindAllStringSubmatch(line, -1) {
			all[m[1]] = true
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			id := slug(m[1])
			if n := times[id]; n > 0 {
				all[id+"-"+strconv.Itoa(n)] = true
			} else {
				all[id] = true
			}
			times[id]++
		}
	}
	return all
}

func slug(heading string) string {
	heading = linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// starts are where readers begin.
var starts = []string{"README.md", "docs/README.md"}

// TestReached holds that a reader comes from the README or the index of docs to every page.
func TestReached(t *testing.T) {
	t.Parallel()
	all := make(map[string]*page)
	for _, p := range pages(t) {
		all[p.name] = p
	}
	reached := make(map[string]bool)
	for next := starts; len(next) > 0; next = next[1:] {
		p := all[next[0]]
		if p == nil || reached[p.name] {
			continue
		}
		reached[p.name] = true
		for i, line := range p.lines {
			if p.code[i] {
				continue
			}
			for _, target := range targets(line) {
				file, _, _ := strings.Cut(target, "#")
				file = path.Join(path.Dir(p.name), file)
				next = append(next, file, file+"/README.md")
			}
		}
	}
	for name, p := range all {
		if !reached[name] && strings.HasPrefix(name, "docs/") {
			t.Errorf("%s: no link of %s leads to it, nor of the pages that they link to", p.name, strings.Join(starts, " or "))
		}
	}
}
