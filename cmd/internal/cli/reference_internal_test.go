package cli

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Update has tests rewrite the files that they compare with.
var Update = flag.Bool("update", false, "rewrite the golden screens of testdata/replay and the page of the command line; read the diff")

// pageFile is the reference of the command line.
const pageFile = "../../../docs/reference/cli.md"

// TestReference holds the page against the commands. With -update it writes it: make docs.
func TestReference(t *testing.T) {
	want := reference(Root())
	if *Update {
		if err := os.WriteFile(pageFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))) != want {
		t.Errorf("%s is stale: run make docs", pageFile)
	}
}

const before = `# Command line

` + "`reprise`" + ` is one program: it runs nodes, talks to agents, and shows what happened. ` + "`reprise COMMAND --help`" + `
prints what this page has about a command. The page is made from the program.

| | |
|---|---|
`

const between = `
Words in capital letters stand for what you write. What is in brackets may be left out. The address of an agent is
` + "`kind/key`, or `tenant/kind/key`" + ` for a tenant other than ` + "`default`" + `.

## Output

- Results go to standard output, remarks and errors to standard error. An error is one line, and a second one with what to do.
- On a terminal, tables are cut to its width, times are local or ages, and long output is shown in ` + "`$PAGER`" + `. Elsewhere
  output is whole, plain and in UTC.
- With ` + "`-o json`" + ` standard output has JSON and nothing else: one object, or one object a line for lists. Keys may be added in
  later versions; do not depend on their order.
- Nothing that users, models or tools wrote reaches a terminal with its control characters.

## Exit codes

0: done. 1: refused or failed. 2: wrong usage. 3 and 130: ` + "`ask`" + ` ended before its turn. See
[Exit codes](errors.md#exit-codes).

## Environment variables

A flag that is not given is read from its variable, unless a flag that excludes it is given. The variable is ` + "`REPRISE_`" + ` and the name of
the flag in capital letters, with ` + "`_` for `-`" + `. ` + "`REPRISE_LOG_FORMAT=json` is `--log-format json`" + `. An empty variable counts as not set. The flags
` + "`--agent`, `--all`, `--auth`, `--id`, `--turn`, `--yes`" + ` and the ` + "`--name`" + ` of a timer have no variable. Further variables:

| variable | what |
|---|---|
| ` + "`NATS_URL`" + ` | URL of the NATS server, if neither ` + "`--nats` nor `--context` nor `--data`" + ` is given |
| ` + "`REPRISE_AUTH`" + ` | login of the embedded NATS server: the login itself, not a file |
| ` + "`REPRISE_KEY`" + ` | wrapping keys, if neither ` + "`--key-file`" + ` nor the configuration has one |
| ` + "`OPENAI_API_KEY`, `OPENAI_BASE_URL`" + ` | key and server of the demo agents of ` + "`dev`" + ` |
| ` + "`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`" + ` | where nodes and ` + "`traces`" + ` send spans |
| ` + "`TRACEPARENT`, `TRACESTATE`" + ` | trace context of inputs that a command sends |
| ` + "`PAGER`, `NO_COLOR`, `TZ`" + ` | as in other programs |
| ` + "`GOGC`, `GOMEMLIMIT`" + ` | if not set, a node sets 400, and three quarters of the memory that it may use |

## Flags of every command

`

// reference is the page.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(before)
	for _, g := range root.Groups() {
		var names []string
		for _, c := range grouped(root, g.ID) {
			names = append(names, fmt.Sprintf("[%s](#%s)", c.Name(), strings.ReplaceAll(c.CommandPath(), " ", "-")))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", strings.TrimSuffix(g.Title, ":"), strings.Join(names, " · "))
	}
	b.WriteString("| Others | [completion](#reprise-completion) |\n")
	b.WriteString(between)
	flags(&b, root, root.PersistentFlags())
	b.WriteString("\n## Connection flags\n\nCommands that talk to a node find it by these flags, by `NATS_URL`, or in the data folder of a node on the same machine.\n" +
		"Where one means something else, or has another default, the section of the command lists it. `serve` and `restore` have no `--person` and no `--timeout`.\n\n")
	show, _, _ := root.Find([]string{"show"})
	flags(&b, show, show.PersistentFlags())
	b.WriteString("\n## Shared flags\n\nSeveral commands have these. The section of a command names those that it has.\n\n")
	flags(&b, show, shared(root))
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range grouped(root, g.ID) {
			describe(&b, c)
		}
	}
	b.WriteString("\n## Others\n")
	completion, _, _ := root.Find([]string{"completion"})
	describe(&b, completion)
	return b.String()
}

// shared are flags that several commands have, as one of these has them.
func shared(root *cobra.Command) *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	for name, of := range map[string]string{"at": "show", "id": "interrupt", "limit": "ls", "reason": "interrupt", "tenant": "ls", "turn": "events", "watch": "show"} {
		c, _, _ := root.Find([]string{of})
		set.AddFlag(c.Flags().Lookup(name))
	}
	return set
}

// same reports whether the flag is described as the one of its name in set.
func same(set *pflag.FlagSet, f *pflag.Flag) bool {
	other := set.Lookup(f.Name)
	return other != nil && other.Usage == f.Usage && other.DefValue == f.DefValue
}

func grouped(root *cobra.Command, group string) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(root.Commands()), func(c *cobra.Command) bool { return c.GroupID != group })
}

// describe writes a command and those below it.
func describe(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n### %s\n\n", c.CommandPath())
	paragraphs(b, cmp.Or(c.Long, c.Short+"."))
	fmt.Fprintf(b, "\n```text\n%s\n```\n", strings.TrimSuffix(c.UseLine(), " [flags]"))
	if c.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```text\n%s\n```\n", regexp.MustCompile(`(?m)^  `).ReplaceAllString(c.Example, ""))
	}
	show, _, _ := c.Root().Find([]string{"show"})
	own, elsewhere := pflag.NewFlagSet("", pflag.ContinueOnError), []string(nil)
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if same(shared(c.Root()), f) {
			elsewhere = append(elsewhere, "`--"+f.Name+"`")
		} else {
			own.AddFlag(f)
		}
	})
	c.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !same(show.PersistentFlags(), f) {
			own.AddFlag(f)
		}
	})
	var table strings.Builder
	if flags(&table, c, own); table.Len() > 0 {
		b.WriteString("\n" + table.String())
	}
	if elsewhere != nil {
		elsewhere = []string{"[shared flags](#shared-flags) " + strings.Join(elsewhere, ", ")}
	}
	if c.HasAvailablePersistentFlags() {
		elsewhere = append(elsewhere, "[connection flags](#connection-flags)")
	}
	if elsewhere != nil {
		fmt.Fprintf(b, "\nAlso: %s.\n", strings.Join(elsewhere, "; "))
	}
	if c.Name() == "completion" { // its text has those below it
		return
	}
	for _, below := range c.Commands() {
		describe(b, below)
	}
}

// flags writes a table of flags, unless there are none but help.
func flags(b *strings.Builder, c *cobra.Command, set *pflag.FlagSet) {
	var rows []string
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		name := "`--" + f.Name
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		switch {
		case value == "":
		case f.NoOptDefVal != "":
			name += "[=" + value + "]"
		default:
			name += " " + value
		}
		without, variable := f.DefValue, variableOf(f.Name)
		if slices.Contains([]string{"", "0", "0s", "false", "[]"}, without) || strings.Contains(text, "(default") {
			without = ""
		}
		if without != "" {
			without = "`" + without + "`"
		}
		if !readsVariable(c, f.Name) {
			variable = ""
		} else {
			variable = "`" + variable + "`"
		}
		rows = append(rows, fmt.Sprintf("| %s` | %s | %s | %s |\n", name, markdown(text), without, variable))
	})
	if len(rows) > 0 {
		b.WriteString("| flag | | default | variable |\n|---|---|---|---|\n" + strings.Join(rows, ""))
	}
}

// paragraphs writes a text of a command as Markdown: lines that are indented stay as they are.
func paragraphs(b *strings.Builder, text string) {
	var fenced bool
	text = regexp.MustCompile(`\n{3,}`).ReplaceAllString(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		next := "" // the line below, if it is indented as well
		if i+1 < len(lines) && (strings.HasPrefix(lines[i+1], "  ") || strings.HasPrefix(lines[i+1], "\t")) {
			next = lines[i+1]
		}
		if line == "" && !fenced && next != "" {
			continue // the fence has an empty line before it
		}
		indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") || fenced && line == "" && next != ""
		switch {
		case indented && !fenced:
			b.WriteString("\n```text\n")
		case !indented && fenced:
			b.WriteString("```\n")
			if line != "" {
				b.WriteString("\n")
			}
		}
		if fenced = indented; fenced {
			b.WriteString(line + "\n")
			continue
		}
		b.WriteString(strings.TrimSuffix(strings.TrimRight(markdown(line), " "), "\n") + "\n")
	}
	if fenced {
		b.WriteString("```\n")
	}
}

var (
	inQuotes = regexp.MustCompile(`"(reprise [^"]+|approvals forget|backup --keys)"`)
	ofFlag   = regexp.MustCompile(`(^|[\s(])((?:--[a-z][a-z-]*(?:=\w+)?|-o json|\$?[A-Z]+(?:_[A-Z]+)+|\$[A-Z]{3,}|[a-z]+(?:_[a-z]+)+)\b)`)
)

// markdown is a line of help in Markdown: commands, flags and variables are code.
func markdown(line string) string {
	parts := strings.Split(inQuotes.ReplaceAllString(line, "`$1`"), "`")
	for i := range parts {
		if i%2 == 0 {
			parts[i] = strings.NewReplacer("<", `\<`, "*", `\*`, "|", `\|`).Replace(parts[i])
			parts[i] = ofFlag.ReplaceAllStringFunc(parts[i], func(s string) string {
				m := ofFlag.FindStringSubmatch(s)
				return m[1] + "`" + m[2] + "`"
			})
		}
	}
	return strings.Join(parts, "`")
}

// TestCommands holds that each command can be understood by its help alone: it has a line about it
// and, where it takes arguments, examples, which are command lines that it accepts.
func TestCommands(t *testing.T) {
	t.Setenv("REPRISE_TENANT", "")
	var all func(*cobra.Command)
	all = func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || len(c.Short) > 80 {
			t.Errorf("%s: the line about it is empty, ends with a full stop or is too long: %q", c.CommandPath(), c.Short)
		}
		if c.Example == "" && arguments(c.Use) != nil && c.Name() != "help" {
			t.Errorf("%s takes arguments and has no example", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); value != strings.ToUpper(value) {
				t.Errorf("%s: the help of --%s calls its value %s: name it in backquotes and capital letters", c.CommandPath(), f.Name, value)
			}
		})
		for line := range strings.Lines(c.Example) {
			example(t, c.CommandPath(), strings.TrimSuffix(line, "\n"))
		}
		for _, below := range c.Commands() {
			all(below)
		}
	}
	all(Root())
}

// example holds that a line is one that a command accepts.
func example(t *testing.T, of, line string) {
	t.Helper()
	program, found := strings.CutPrefix(line, "  reprise ")
	if !found {
		t.Errorf("%s: an example begins with two spaces and reprise: %q", of, line)
	}
	var words []string
	for _, m := range regexp.MustCompile(`"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)`).FindAllStringSubmatch(program, -1) {
		if m[3] != "" && (m[3][0] == '<' || m[3][0] == '>') {
			break
		}
		words = append(words, m[1]+m[2]+m[3])
	}
	c, rest, err := Root().Find(words)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: %s: %v", of, line, err)
	}
}
