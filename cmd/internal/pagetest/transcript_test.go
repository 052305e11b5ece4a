package pagetest

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// command is what is run of a page at once.
type command struct {
	line   int // of the page, from 1
	text   string
	shown  []string // what the page shows as its output; nil if it is not compared
	first  int      // the line of the block, from 0, at which that begins
	hidden bool
}

// transcript reads the commands of a console block.
func transcript(b *block) (all []command, err error) {
	for i, line := range b.lines {
		text, is := strings.CutPrefix(line, "$ ")
		switch {
		case is:
			all = append(all, command{line: b.line + 1 + i, text: text, shown: []string{}, first: i + 1})
		case len(all) == 0:
			return nil, fmt.Errorf("a console block begins with a command: %q", "$ ")
		default:
			c := &all[len(all)-1]
			if more, is := strings.CutPrefix(line, "> "); is && len(c.shown) == 0 && !complete(c.text) {
				c.text += "\n" + more
				c.first = i + 1
				continue
			}
			c.shown = append(c.shown, line)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("a console block begins with a command: %q", "$ ")
	}
	return all, nil
}

// commands splits a sh block into commands that bash reads as whole ones.
func commands(b *block) (all []command, err error) {
	text, start := "", 0
	for i, line := range b.lines {
		if text == "" {
			if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "#") {
				continue
			}
			text, start = line, b.line+1+i
		} else {
			text += "\n" + line
		}
		if complete(text) {
			all, text = append(all, command{line: start, text: text}), ""
		}
	}
	if text != "" {
		return nil, fmt.Errorf("line %d: the command is not complete: %s", start, text)
	}
	return all, nil
}

// complete reports whether bash reads a text as whole commands.
func complete(text string) bool {
	if strings.HasSuffix(text, `\`) {
		return false
	}
	if !strings.ContainsAny(text, "'\"`(){}<") && !keyword.MatchString(text) {
		return !joint.MatchString(text)
	}
	out, err := exec.Command("bash", "-n", "-c", text).CombinedOutput()
	return err == nil && len(out) == 0 && !joint.MatchString(text)
}

var (
	keyword = regexp.MustCompile(`\b(if|for|while|until|case|function|select)\b`)
	joint   = regexp.MustCompile(`(\||&&)\s*$`)
)

// anyLines stands for any number of lines.
const anyLines = "…"

// duration is how Go prints one.
const duration = `\b(?:\d+(?:\.\d+)?(?:ns|µs|ms|s|m|h|d))+\b`

// elapsed is a duration that was measured: 0s, or one finer than a second. Whole seconds are configured, and compared.
var elapsed = regexp.MustCompile(`\b(?:(?:\d+[dhm])*(?:\d+\.\d+s|\d+(?:\.\d+)?(?:ns|µs|ms))|0s)\b`)

// same reports whether an output is what a page shows, but for what is unsteady. A duration that the page
// shows as measured stands for any other: on a busy machine 5.6s is 12s.
func same(shown []string, output string) bool {
	var pattern []*regexp.Regexp
	for _, line := range steady(strings.Join(shown, "\n")) {
		if line == anyLines {
			pattern = append(pattern, nil)
			continue
		}
		parts := elapsed.Split(line, -1)
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		pattern = append(pattern, regexp.MustCompile("^"+strings.Join(parts, duration)+"$"))
	}
	return matches(pattern, steady(output))
}

// matches reports whether lines are those of a pattern, in which nil stands for any number of them.
func matches(pattern []*regexp.Regexp, lines []string) bool {
	if len(pattern) == 0 {
		return len(lines) == 0
	}
	if pattern[0] == nil {
		return slices.ContainsFunc(indexes(len(lines)+1), func(i int) bool { return matches(pattern[1:], lines[i:]) })
	}
	return len(lines) > 0 && pattern[0].MatchString(lines[0]) && matches(pattern[1:], lines[1:])
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// unsteady are parts of an output that are others in each run.
var unsteady = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?([KMG]i?)?B\b|\b\d+(\.\d+)? ?k[Bb]\b`), "SIZE"},
	{regexp.MustCompile(`\b[0-9A-Z]{26}\b`), "ID"}, // ULIDs, and those of inputs
	{regexp.MustCompile(`\b(call_)?[0-9a-f]{12,}\b`), "${1}HASH"},
	{regexp.MustCompile(`:(3[2-9]|[4-6]\d)\d{3}\b`), ":PORT"}, // one that the system has chosen
	{regexp.MustCompile(`\b(process|pid) \d+\b`), "PROCESS"},
	{regexp.MustCompile(`\s+`), " "}, // columns are as wide as what is in them
}

// steady are the lines of an output without them, and without spaces and empty lines at its end.
func steady(output string) (lines []string) {
	for line := range strings.Lines(strings.TrimRight(output, " \t\n")) {
		for _, u := range unsteady {
			line = u.pattern.ReplaceAllString(line, u.with)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}
