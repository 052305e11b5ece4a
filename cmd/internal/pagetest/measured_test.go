package pagetest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// measured are figures that come of a measurement: rates, microseconds, percentiles, and times or sizes that
// something takes.
var measured = regexp.MustCompile(`(?i)\b\d[\d.,]*\s?(?:µs|us\b|(?:[a-z]+\s){0,2}(?:per|an?) second\b|(?:turns|events|messages|appends|calls|agents|[kMG]i?B)/s\b)` +
	`|\b(?:median|p50|p90|p99|percentile)\b[^.|\n]{0,30}\d|\d ?m?s\b[^.|\n]{0,20}\b(?:median|p50|p90|p99|percentile)\b` +
	`|\b(?:takes?|took|costs?|uses?|used) (?:(?:about|around|some|only|up to) )?\d[\d.,]*\s?(?:ms|[kKMG]i?B)\b`)

// measures is code that prints such a figure, or a flag that sets it.
var measures = regexp.MustCompile(`\bbench\b|\bgo test\b|\bmake [a-z]|(?:^|\s|` + "`" + `)--?[a-z][a-z-]+`)

// TestMeasured holds that a measured figure stands in a section that names, in code, the command that prints it.
// Limits and defaults are no measured figures, except for rates: their section names the flag or the command, too.
func TestMeasured(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		if p.isDoc() {
			faults(t, p, p.badFigures())
		}
	}
}

// badFigures are the figures of a page whose section has no command.
func (p *page) badFigures() (bad []problem) {
	prose := strings.Split(p.prose(), "\n")
	var figures []problem
	command := false
	end := func() {
		if !command {
			bad = append(bad, figures...)
		}
		figures, command = nil, false
	}
	for i, line := range p.lines {
		if !p.code[i] && heading.MatchString(line) {
			end()
		}
		if hit := measured.FindString(prose[i]); hit != "" {
			figures = append(figures, problem{i + 1, fmt.Sprintf("no command of the section prints the figure %q", hit)})
		}
		code := line
		if !p.code[i] {
			code = strings.Join(codeSpan.FindAllString(line, -1), " ")
		}
		command = command || measures.MatchString(code)
	}
	end()
	return bad
}
