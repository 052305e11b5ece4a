package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// finished are the packages that are written in the words of the field throughout. One is
// added when its last private word is gone.
var finished = []string{"actors", "actors/turn", "cluster/archive", "cluster/integrity", "eventlog/encrypted", "messages", "messages/cron", "messages/internal/codec", "projections", "projections/index"}

// terms are standard terms that hold a word of phrases.
var terms = regexp.MustCompile(`(?i)\bdead[ -]?letters?\b|letters, digits`)

// names are words that no identifier of a finished package has; beside each, the word for it.
var names = map[string]string{
	"told": "reported", "tell": "report", "hear": "receive", "heard": "received", "fleet": "index", "keeper": "builder",
	"crew": "dispatcher", "shelf": "blobs", "spill": "offload", "hush": "drain", "stir": "wake", "heed": "apply",
	"door": "endpoint", "room": "package", "letter": "message", "anew": "again", "nobody": "none", "place": "position",
	"spent": "used", "stray": "unrouted", "calm": "limited", "holdings": "inventory", "reached": "exceeded",
	"quiet": "drained", "owing": "open", "unsettled": "open", "afterlife": "dead letters", "shelve": "offload",
}

// TestWords holds finished packages to the words of the field: their comments, texts and
// names, but not their tests.
func TestWords(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(Phrases))
	for i, p := range Phrases {
		patterns[i] = regexp.MustCompile(`(?i)` + p.Pattern)
	}
	read := 0
	for _, f := range tree(t) {
		if f.test || !slices.Contains(finished, f.pkg) {
			continue
		}
		read++
		prose(f.ast, func(text string) {
			for i, p := range patterns {
				if hit := p.FindString(terms.ReplaceAllString(text, "")); hit != "" {
					t.Errorf("%s: %q in %q: better %s", f.name, hit, strings.TrimSpace(text), Phrases[i].Better)
				}
			}
		})
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
	if read == 0 {
		t.Error("no finished package was read")
	}
}

// prose calls each with every comment and string literal of a file.
func prose(f *ast.File, each func(string)) {
	for _, group := range f.Comments {
		each(group.Text())
	}
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
