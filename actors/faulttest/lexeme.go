package faulttest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"slices"
	"strconv"
)

// lexeme is a token of Go code and its position.
type lexeme struct {
	text string
	span
	// optional marks a comma before a closing bracket: it depends on line breaks.
	optional bool
}

// lex splits code into tokens, without comments, and without semicolons because most
// are line breaks.
func lex(code []byte) (list []lexeme) {
	fset := token.NewFileSet()
	f := fset.AddFile("", fset.Base(), len(code))
	var s scanner.Scanner
	s.Init(f, code, nil, 0)
	for {
		pos, tok, text := s.Scan()
		if text == "" {
			text = tok.String()
		}
		switch tok {
		case token.EOF:
			return list
		case token.SEMICOLON:
			continue
		case token.RPAREN, token.RBRACK, token.RBRACE:
			if last := len(list) - 1; last >= 0 && list[last].text == "," {
				list[last].optional = true
			}
		}
		start := f.Offset(pos)
		list = append(list, lexeme{text: text, span: span{start, start + len(text)}})
	}
}

// matchAt reports whether code begins with the tokens of old, and the number of tokens
// matched.
func matchAt(code, old []lexeme) (n int, ok bool) {
	if len(old) == 0 || len(code) == 0 || code[0].text != old[0].text {
		return 0, false
	}
	for j := 0; j < len(old); {
		switch {
		case n < len(code) && code[n].text == old[j].text:
			n, j = n+1, j+1
		case n < len(code) && code[n].optional:
			n++
		case old[j].optional:
			j++
		default:
			return 0, false
		}
	}
	return n, true
}

// shared returns how many tokens two pieces of code have in common at their beginning.
func shared(a, b []lexeme) (n int) {
	for n < len(a) && n < len(b) && a[n].text == b[n].text {
		n++
	}
	return n
}

// standard lists the packages that a fault may use in a file that does not import them.
var standard = []string{"context", "errors", "fmt", "slices", "strings", "time"}

// withImports returns the text of a file with the imports that the added code needs. It
// returns an error if the file is not valid Go.
func withImports(text []byte, added string) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	at := fset.Position(f.Name.End()).Offset
	for _, name := range selected(added) {
		path := strconv.Quote(name)
		if !slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == path }) {
			text = slices.Insert(text, at, []byte(fmt.Sprintf("; import %s", path))...)
		}
	}
	return text, nil
}

// selected returns the standard packages from which code selects a name.
func selected(code string) (names []string) {
	list := lex([]byte(code))
	for i := range list {
		qualifies := i+1 < len(list) && list[i+1].text == "." && (i == 0 || list[i-1].text != ".")
		if name := list[i].text; qualifies && slices.Contains(standard, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
