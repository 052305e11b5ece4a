package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// finished are the packages that are written in the words of the field throughout. One is
// added when its last private word is gone.
var finished = []string{"actors", "actors/turn", "cluster/archive", "cluster/integrity", "eventlog/encrypted", "messages", "messages/cron", "messages/internal/codec", "projections", "projections/index"}

// terms are standard terms that hold a word of phrases, and uses of one in its plain sense.
var terms = regexp.MustCompile(`(?i)\bdead[\s-]?letters?\b|letters,? (and )?digits|a letter that no key has|\b(make|takes|is|be|needs|and|no) room\b`)

// worded are the files outside finished packages whose texts have a word of phrases, with the reasons.
var worded = map[string]string{
	"actors/turn/turntest/children.go":  "the stories of the turn machine have a kind of that name",
	"cluster/gateway/nodes.go":          "nodes of other versions use the subject",
	"cluster/ownership/plan.go":         "it is stored",
	"cmd/internal/archtest/phrases.go":  "it is the list",
	"cmd/internal/cli/demo.go":          "the texts are part of recorded digests",
	"cmd/internal/config/expression.go": "floor is a function of arithmetic",
	"eventlog/natslog/streams.go":       "sealed is a setting of NATS streams",
	"providers/toolbox/clock.go":        "the text is part of recorded digests",
}

// names are words that no identifier of a finished package has; beside each, the word for it.
var names = map[string]string{
	"told": "reported", "tell": "report", "hear": "receive", "heard": "received", "fleet": "index", "keeper": "builder",
	"crew": "dispatcher", "shelf": "blobs", "spill": "offload", "hush": "drain", "stir": "wake", "heed": "apply",
	"door": "endpoint", "room": "package", "letter": "message", "anew": "again", "nobody": "none", "place": "position",
	"spent": "used", "stray": "unrouted", "calm": "limited", "holdings": "inventory", "reached": "exceeded",
	"quiet": "drained", "owing": "open", "unsettled": "open", "afterlife": "dead letters", "shelve": "offload",
}

// TestWords holds finished packages to the words of the field: their comments, texts and
// names, but not their tests. Of the other packages it holds the texts to them.
func TestWords(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(Phrases))
	for i, p := range Phrases {
		patterns[i] = regexp.MustCompile(`(?i)` + p.Pattern)
	}
	hold := func(f file, text string) {
		for i, p := range patterns {
			if hit := p.FindString(terms.ReplaceAllString(text, "")); hit != "" {
				t.Errorf("%s: %q in %q: better %s", f.name, hit, strings.TrimSpace(text), Phrases[i].Better)
			}
		}
	}
	read, needed := 0, make(map[string]bool)
	for _, f := range tree(t) {
		switch {
		case f.test:
		case slices.Contains(finished, f.pkg):
			read++
			comments(f.ast, func(text string) { hold(f, text) })
			texts(f.ast, func(text string) { hold(f, text) })
			named(t, f)
		case worded[f.name] != "":
			texts(f.ast, func(text string) {
				needed[f.name] = needed[f.name] || slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool {
					return p.MatchString(terms.ReplaceAllString(text, ""))
				})
			})
		default:
			texts(f.ast, func(text string) { hold(f, text) })
		}
	}
	if read == 0 {
		t.Error("no finished package was read")
	}
	for _, name := range slices.Sorted(maps.Keys(worded)) {
		if !needed[name] {
			t.Errorf("%s: its texts have no such word any more: take it out of the table", name)
		}
	}
}

// named holds the names that a file declares to the words of the field.
func named(t *testing.T, f file) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		for _, name := range declared(n) {
			for _, word := range split(terms.ReplaceAllString(name, "")) {
				if better, banned := names[word]; banned {
					t.Errorf("%s: the name %s: better %s", f.name, name, better)
				}
			}
		}
		return true
	})
}

// comments calls each with every comment of a file.
func comments(f *ast.File, each func(string)) {
	for _, group := range f.Comments {
		each(group.Text())
	}
}

// texts calls each with every string literal of a file.
func texts(f *ast.File, each func(string)) {
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			each(lit.Value)
		}
		return true
	})
}

// declared returns the names that a node declares.
func declared(n ast.Node) (list []string) {
	idents := func(ids ...*ast.Ident) {
		for _, id := range ids {
			list = append(list, id.Name)
		}
	}
	switch n := n.(type) {
	case *ast.FuncDecl:
		idents(n.Name)
	case *ast.TypeSpec:
		idents(n.Name)
	case *ast.ValueSpec:
		idents(n.Names...)
	case *ast.Field:
		idents(n.Names...)
	case *ast.RangeStmt:
		for _, e := range []ast.Expr{n.Key, n.Value} {
			if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
				idents(id)
			}
		}
	case *ast.AssignStmt:
		for _, e := range n.Lhs {
			if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
				idents(id)
			}
		}
	}
	return list
}

// split returns the words of a name in lower case: leftOut is left and out.
func split(name string) (words []string) {
	start := 0
	for i, r := range name {
		if unicode.IsUpper(r) && i > start {
			words, start = append(words, strings.ToLower(name[start:i])), i
		}
	}
	return append(words, strings.ToLower(name[start:]))
}
