package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// What a file may hold at most. An honest file is far below; beyond, the time
// and memory to read it grow faster than its size.
const (
	maxDepth   = 64
	maxTokens  = 100_000
	maxAliases = 1000
	maxNodes   = 50_000 // after aliases are followed
)

// parseYAML is the tree that data holds; nil if that is a problem.
func parseYAML(c *collector, data []byte) *node {
	if !checkSource(c, data) {
		return nil
	}
	tokens := lexer.Tokenize(normalize(data))
	if !checkTokens(c, tokens) {
		return nil
	}
	file, err := safeParse(tokens)
	if err != nil {
		addSyntax(c, err)
		return nil
	}
	body, ok := onlyBody(c, file)
	if !ok {
		return nil
	}
	b := &builder{collector: c, anchors: make(map[string]*node)}
	root := b.build(body, placeOf(body))
	if b.stopped {
		return nil
	}
	return root
}

// normalize is data without byte order mark and with plain line ends.
func normalize(data []byte) string {
	s := strings.TrimPrefix(string(data), "\ufeff")
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
}

func splitLines(data []byte) []string { return strings.Split(normalize(data), "\n") }

func checkSource(c *collector, data []byte) bool {
	switch {
	case len(data) > MaxSize:
		c.add(place{}, "keep long texts in files of their own", "the file is larger than %d bytes", MaxSize)
		return false
	case !utf8.Valid(data):
		c.add(placeIn(data, invalidAt(data)), "save the file as UTF-8", "this is not UTF-8 text")
		return false
	}
	if i := bytes.IndexFunc(data, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n", r) || r == 0x7f }); i >= 0 {
		c.add(placeIn(data, i), "remove it, or write it as an escape in double quotes", "the control character %U stands here", data[i])
		return false
	}
	return true
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// placeIn is where byte i of data is.
func placeIn(data []byte, i int) place {
	before := normalize(data[:i])
	line := before[strings.LastIndex(before, "\n")+1:]
	return place{strings.Count(before, "\n") + 1, utf8.RuneCountInString(line) + 1}
}

// checkTokens bounds what the parser will have to do, which it does recursively.
func checkTokens(c *collector, tokens token.Tokens) bool {
	var columns []int // of the block collections that are open
	flow, aliases := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow = max(0, flow-1)
		case token.AnchorType, token.AliasType, token.TagType, token.MappingKeyType:
			aliases++
		}
		if flow == 0 && opensBlock(t) {
			for len(columns) > 0 && columns[len(columns)-1] >= t.Position.Column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, t.Position.Column)
		}
		switch at := (place{t.Position.Line, max(1, t.Position.Column)}); {
		case len(columns)+flow > maxDepth:
			c.add(at, "flatten it", "the file nests more than %d levels deep here", maxDepth)
			return false
		case aliases > maxAliases:
			c.add(at, "write the values out", "there are more than %d anchors, aliases and tags", maxAliases)
			return false
		}
	}
	if len(tokens) > maxTokens {
		c.add(place{}, "split the file, or keep long lists elsewhere", "the file holds more than %d words and signs", maxTokens)
		return false
	}
	return true
}

// opensBlock reports whether t begins an entry of a block list or mapping: a dash,
// or the key before a colon.
func opensBlock(t *token.Token) bool {
	switch t.Type {
	case token.SequenceEntryType, token.MappingKeyType:
		return true
	}
	return t.Next != nil && t.Next.Type == token.MappingValueType
}

// safeParse turns a panic of the parser into an error.
func safeParse(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the parser gave up")
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// onlyBody is the one document of a file.
func onlyBody(c *collector, file *ast.File) (ast.Node, bool) {
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			bodies = append(bodies, d.Body)
		}
	}
	switch {
	case len(bodies) == 0:
		c.add(place{1, 1}, "begin with agents: and one agent below it", "the file is empty")
	case bodies[0].Type() == ast.DirectiveType:
		c.add(placeOf(bodies[0]), "remove the line", "YAML directives are not used here")
	case len(bodies) > 1:
		c.add(placeOf(bodies[1]), "keep one document in a file", "a second YAML document begins here")
	default:
		return bodies[0], true
	}
	return nil, false
}

// syntax says in plain words what the parser's messages mean.
var syntax = []struct{ part, what, do string }{
	{"tab character", "a tab indents this line", "use spaces"},
	{"'\t'", "a tab indents this line", "use spaces"},
	{"end character of", "a quote is opened and never closed", "close it"},
	{"']'", "a [ is opened and never closed, or a comma is missing", "close it, or put the comma"},
	{"'}'", "a { is opened and never closed, or a comma is missing", "close it, or put the comma"},
	{"flow map content", "a { is opened and never closed, or a comma is missing", "close it, or put the comma"},
	{"reserved character", "a value may not begin with @ or `", "put it in quotes"},
	{"escape character", "this backslash begins no YAML escape", "double it, or use single quotes"},
	{"mapping value is not allowed", "a colon stands where no field can begin", "put the value in quotes, or indent the line like its neighbours"},
	{"non-map value", "a field is expected here", "write name: value, indented like its neighbours"},
	{"unexpected key name", "a field is expected here", "write name: value, indented like its neighbours"},
	{"value is not allowed", "a value stands where none can be", "write name: value, indented like its neighbours"},
}

// addSyntax reports the parser's error without what it quotes of the file.
func addSyntax(c *collector, err error) {
	what, do := "this is not valid YAML", "check indentation, quotes and brackets here"
	at := place{1, 1}
	if e := yaml.Error(nil); errors.As(err, &e) {
		message := e.GetMessage()
		if !strings.Contains(message, `"`) && message != "" {
			what = fmt.Sprintf("this is not valid YAML: %s", message)
		}
		for _, s := range syntax {
			if strings.Contains(message, s.part) {
				what, do = s.what, s.do
				break
			}
		}
		if t := e.GetToken(); t != nil && t.Position != nil {
			at = place{max(1, t.Position.Line), max(1, t.Position.Column)}
		}
	}
	c.add(at, do, "%s", what)
}
