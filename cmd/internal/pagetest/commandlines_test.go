package pagetest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-dev/reprise/cmd/internal/cli"
)

// TestCommandLines holds that command lines which are written down, and not run, are ones that the program and the
// Makefile accept: those of pages, in code spans and in blocks, and those in code marks of deployment files and Go code.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	check := newChecker(t)
	for _, p := range pages(t) {
		faults(t, p, p.badCommandLines(check))
	}
	files, err := filepath.Glob(filepath.Join(root, "cmd/dist/files/*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no deployment files: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range check.spans(string(text), 1) {
			t.Errorf("%s:%d: %s", filepath.Base(file), found.line, found.text)
		}
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		bad, err := badHints(check, name, source)
		for _, found := range bad {
			t.Errorf("%s:%d: %s", strings.TrimPrefix(filepath.ToSlash(name), root+"/"), found.line, found.text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checker checks command lines.
type checker struct {
	program  *cobra.Command
	flags    map[string]bool // of all commands
	makefile string
}

func newChecker(t *testing.T) checker {
	t.Helper()
	makefile, err := readTree("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	c := checker{cli.Root(), make(map[string]bool), makefile}
	var all func(*cobra.Command)
	all = func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		cmd.InitDefaultVersionFlag()
		_ = cmd.ParseFlags(nil) // adds the flags of its parents
		cmd.Flags().VisitAll(func(f *pflag.Flag) { c.flags[f.Name] = true })
		for _, below := range cmd.Commands() {
			all(below)
		}
	}
	all(c.program)
	return c
}

// badCommandLines are the command lines of a page that are refused.
func (p *page) badCommandLines(check checker) (bad []problem) {
	for _, b := range p.blocks {
		bad = append(bad, check.spans(b.text(), b.line+1)...)
		if b.run() {
			continue
		}
		var list []command
		switch b.language {
		case "sh":
			list, _ = commands(b)
		case "console":
			list, _ = transcript(b)
		case "text", "ini":
			for i, line := range b.lines {
				line = strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "ExecStart=")
				list = append(list, command{line: b.line + 1 + i, text: column.Split(line, 2)[0]})
			}
		}
		for _, c := range list {
			for _, text := range check.shell(c.text) {
				bad = append(bad, problem{c.line, text})
			}
		}
	}
	lines := slices.Clone(p.lines)
	for i := range lines {
		if p.code[i] {
			lines[i] = ""
		}
	}
	return append(bad, check.spans(strings.Join(lines, "\n"), 1)...)
}

// column is the space between a command of a list and what is written beside it.
var column = regexp.MustCompile(`  +`)

// mark is code in a text, which a line break may divide.
var mark = regexp.MustCompile("`([^`\n]+(?:\n[^`\n]+)?)`")

// spans checks the code spans of a text that begins at a line.
func (c checker) spans(text string, line int) (bad []problem) {
	for _, at := range mark.FindAllStringSubmatchIndex(text, -1) {
		for _, wrong := range c.span(strings.Join(strings.Fields(text[at[2]:at[3]]), " ")) {
			bad = append(bad, problem{line - 1 + lineAt(text, at[2]), wrong})
		}
	}
	return bad
}

// span checks a code span: a command line, one without the program, or a flag.
func (c checker) span(code string) []string {
	words := strings.Fields(code)
	flag := func(word string) bool { return strings.HasPrefix(word, "--") && len(word) > 2 }
	switch {
	case len(words) == 0:
	case flag(words[0]):
		name, _, _ := strings.Cut(strings.ReplaceAll(words[0][2:], "[=", "="), "=") // the reference shows --name[=VALUE]
		if !c.flags[name] {
			return []string{fmt.Sprintf("no command has the flag --%s", name)}
		}
	case len(words) > 1 && flag(words[1]) && below(c.program, words[0]) != nil:
		return c.shell("reprise " + code)
	default:
		return c.shell(code)
	}
	return nil
}

// state is what a node prints that reads like a command line.
var state = regexp.MustCompile(`^reprise (dev|serve) is ready`)

// shell checks the commands of a shell text that run reprise or make.
func (c checker) shell(text string) (bad []string) {
	if state.MatchString(text) {
		return nil
	}
	for _, words := range simpleCommands(text) {
		for len(words) > 0 && prefix.MatchString(words[0]) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		if i := slices.Index(words, "/reprise"); i > 0 && (words[0] == "docker" || words[0] == "kubectl") {
			words = words[i:]
		}
		wrong := ""
		switch path.Base(words[0]) {
		case "reprise":
			wrong = c.refused(words[1:])
		case "make":
			wrong = c.noTarget(words[1:])
		}
		if wrong != "" {
			bad = append(bad, strings.Join(words, " ")+": "+wrong)
		}
	}
	return bad
}

// prefix is a word that stands before a command.
var prefix = regexp.MustCompile(`^(\w+=.*|sudo|env|exec|nohup|time|timeout|\d+s?|if|while|until|then|do|else|!|\{)$`)

const shellWord = `(?:[^\s'"\\;&|()<>` + "`" + `]|'[^']*'|"(?:[^"\\]|\\.)*"|\\.)+`

var (
	// lexeme is a comment, a redirection, a separator of commands, or a word.
	lexeme = regexp.MustCompile(`(#.*)|(\d*(?:<<<|<<-?|>>|[<>])&?[ ]*(?:` + shellWord + `)?)|([;&|()` + "`" + `\n]+)|(` + shellWord + `)`)
	quoted = regexp.MustCompile(`'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)`)
	nested = regexp.MustCompile(`\$\(([^()]*)\)`)
)

// simpleCommands are the words of each simple command of a shell text, and of those in its quotes, without redirections.
func simpleCommands(text string) (all [][]string) {
	var words []string
	for _, m := range lexeme.FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
		switch {
		case m[3] != "":
			all, words = append(all, words), nil
		case m[4] != "":
			if strings.ContainsRune(m[4], '"') {
				for _, inner := range nested.FindAllStringSubmatch(m[4], -1) {
					all = append(all, simpleCommands(inner[1])...)
				}
			}
			words = append(words, quoted.ReplaceAllString(m[4], "$1$2$3"))
		}
	}
	return append(all, words)
}

// refused returns why the program refuses a command line, or nothing. What a reader fills in is right; arguments
// may be missing, and the value of the last flag.
func (c checker) refused(words []string) string {
	cmd := c.program
	for len(words) > 0 && below(cmd, words[0]) != nil {
		cmd, words = below(cmd, words[0]), words[1:]
	}
	var arguments []string
	for len(words) > 0 {
		word := strings.Trim(words[0], "[]")
		words = words[1:]
		switch {
		case word == "…":
		case word == "-" || !strings.HasPrefix(word, "-"):
			arguments = append(arguments, word)
		default:
			taken, wrong := takeFlag(cmd, word, words)
			if wrong != "" {
				return wrong
			}
			words = words[taken:]
		}
	}
	if len(arguments) == 0 || cmd == c.program && placeholder.MatchString(arguments[0]) {
		return ""
	}
	var err error
	for range 3 { // the most that a command needs
		if err = cmd.ValidateArgs(arguments); err == nil {
			return ""
		}
		arguments = append(arguments, "X")
	}
	return err.Error()
}

// below returns the command of a name below another one, or nil.
func below(cmd *cobra.Command, name string) *cobra.Command {
	if i := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == name }); i >= 0 {
		return cmd.Commands()[i]
	}
	return nil
}

// takeFlag returns how many words after a flag are its value, or what is wrong with it.
func takeFlag(cmd *cobra.Command, word string, next []string) (taken int, wrong string) {
	name, value, has := strings.Cut(word, "=")
	f := cmd.Flag(strings.TrimPrefix(name, "--"))
	if !strings.HasPrefix(name, "--") {
		f = cmd.Flags().ShorthandLookup(name[1:2])
	}
	if f == nil {
		return 0, fmt.Sprintf("%s has no flag %s", cmd.CommandPath(), name)
	}
	if !has && f.NoOptDefVal == "" && len(next) > 0 {
		value, has, taken = next[0], true, 1
	}
	if has && !placeholder.MatchString(value) {
		if err := f.Value.Set(value); err != nil {
			return 0, fmt.Sprintf("the flag %s: %v", name, err)
		}
	}
	return taken, ""
}

// placeholder is a word that a reader fills in.
var placeholder = regexp.MustCompile(`^[A-Z][A-Z0-9]*$|[…%$<{]`)

// noTarget returns why make refuses its arguments, or nothing.
func (c checker) noTarget(words []string) string {
	for _, word := range words {
		if name, _, is := strings.Cut(word, "="); is {
			if !strings.Contains(c.makefile, "$("+name+")") {
				return "the Makefile has no variable " + name
			}
		} else if !strings.HasPrefix(word, "-") && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(word)+`:`).MatchString(c.makefile) {
			return "the Makefile has no target " + word
		}
	}
	return ""
}

// badHints are the command lines in the strings and comments of a Go file that are refused. In a string that is joined
// of several, and in a format, what is filled in first is the program.
func badHints(check checker, name string, source []byte) (bad []problem, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(at token.Pos, text string) {
		for _, found := range check.spans(text, 1) {
			bad = append(bad, problem{set.Position(at).Line - 1 + found.line, found.text})
		}
	}
	for _, group := range file.Comments {
		add(group.Pos(), group.Text())
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit, *ast.BinaryExpr:
			if text, is := joined(n.(ast.Expr)); is {
				add(n.Pos(), strings.ReplaceAll(inQuotes.ReplaceAllString(text, "`$1`"), "`%s ", "`reprise "))
				return false
			}
		}
		return true
	})
	return bad, nil
}

// inQuotes is a command line in the help of a command.
var inQuotes = regexp.MustCompile(`"(reprise\s[^"` + "`" + `]+)"`)

// joined returns the text of an expression that has a string, with %s for what is not constant.
func joined(e ast.Expr) (text string, is bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		left, isLeft := joined(e.X)
		right, isRight := joined(e.Y)
		return left + right, e.Op == token.ADD && (isLeft || isRight)
	}
	return "%s", false
}

// TestCommandLinesBite breaks each kind of a command line once.
func TestCommandLinesBite(t *testing.T) {
	t.Parallel()
	check := newChecker(t)
	for _, c := range []struct{ page, want string }{
		{"`reprise send AGENT Hello --id m1` `reprise` `reprise COMMAND --help` `reprise --version`", ""},
		{"`reprise sendd`", `1: reprise sendd: there is no command "sendd"`},
		{"a\n`reprise\nsend --nmae x`", "2: reprise send --nmae x: reprise send has no flag --nmae"},
		{"`reprise dlq lst`", `"lst"`},
		{"`reprise events -p json`", "no flag -p"},
		{"`reprise events -o json`", ""},
		{"`reprise approve AGENT`", ""},
		{"`reprise approve AGENT CALL MORE`", "one too many"},
		{"`reprise ask AGENT Hi --timeout soon`", "the flag --timeout: "},
		{"`reprise ask AGENT Hi --timeout 3s` `reprise ask AGENT Hi --timeout` `reprise ask … --timeout=TIME`", ""},
		{"`reprise cancel AGENT --input ID | --timer NAME` `reprise backup [--keys] FILE`", ""},
		{"`reprise backup [--kyes] FILE`", "no flag --kyes"},
		{"`send --nmae`", "reprise send has no flag --nmae"},
		{"`--nmae`", "no command has the flag --nmae"},
		{"`--timeout 3s` `reprise dev is ready`", ""},
		{"`make test` `make chaos ROUNDS=3` `make test-chaos`", ""},
		{"`make tset`", "the Makefile has no target tset"},
		{"`make chaos RUNDS=3`", "the Makefile has no variable RUNDS"},

		{"<!-- not run: it waits -->\n```sh\nA=1 reprise ask a/b \"$(reprise state a/b --kyes)\" 2>&1 | tee x # --nmae\n```", "3: reprise state a/b --kyes: "},
		{"<!-- not run: it waits -->\n```sh\nif true; then\n  sudo reprise serve \\\n    --nmae x\nfi\n```", "3: reprise serve --nmae x: "},
		{"<!-- not run: it waits -->\n```sh\nkubectl exec deploy/reprise -- /reprise doctor --quik\n```", "3: /reprise doctor --quik: "},
		{"<!-- not run: it waits -->\n```console\n$ reprise serve --nmae x\n```", "3: reprise serve --nmae x: "},
		{"<!-- file: serve.sh -->\n```sh\nreprise serve --nmae x\n```", "3: reprise serve --nmae x: "},
		{"```console\n$ reprise serve --nmae\nsee `reprise doctro`\n```", `3: reprise doctro: `},
		{"```text\nmake tset     is for --nmae\n$ reprise nodes     --nmae\nreprise: unknown flag: --nmae\n```", "2: make tset: "},
		{"```text\nmake test     is for --nmae\n$ reprise nodes     --nmae\nreprise: unknown flag: --nmae\n```", ""},
		{"```ini\nExecStart=/usr/bin/reprise serve --nmae\n```", "2: /usr/bin/reprise serve --nmae: "},
	} {
		expect(t, c.page, parsePage("p.md", c.page).badCommandLines(check), c.want)
	}
	for _, c := range []struct{ code, want string }{
		{`"see ` + "`reprise doctor`" + `"`, ""},
		{"\n\"see `reprise doctro`\"", "2: reprise doctro: "},
		{"\"see `%s doctro`\"", "1: reprise doctro: "},
		{"\"see `\" + started + \" doctro` and `\" + started + \" doctor`\"", "1: reprise doctro: "},
		{"\"see `%s %s %s`\"", ""},
		{"`see \"reprise\n\tdoctro\"`", "1: reprise doctro: "},
		{"1 // see `reprise doctro`", "1: reprise doctro: "},
	} {
		bad, err := badHints(check, "p.go", []byte("package p; var started, _ = \"\", "+c.code))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, c.code, bad, c.want)
	}
}

// expect holds that the only problem found is the wanted one, or that there is none.
func expect(t *testing.T, text string, bad []problem, want string) {
	t.Helper()
	got := ""
	for _, found := range bad {
		got += fmt.Sprintf("%d: %s", found.line, found.text)
	}
	if len(bad) > 1 || (want == "") != (got == "") || !strings.Contains(got, want) {
		t.Errorf("%q: got %q, want %q", text, got, want)
	}
}
