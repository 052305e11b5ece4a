package reftest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Page writes the generated parts of a reference page. Objects and words that a table names are
// described once, in the part that [Page.Shared] returns.
type Page struct {
	t testing.TB
	*Source
	// Elsewhere are the addresses of types that another page describes, by package.Name.
	Elsewhere map[string]string
	// Usual are the texts of fields without a comment, by their name in JSON.
	Usual map[string]string

	known  map[string]bool
	shared []string // types to describe, in the order in which they were named
}

// NewPage returns a page of what s declares.
func NewPage(t testing.TB, s *Source) *Page {
	return &Page{t: t, Source: s, known: make(map[string]bool)}
}

// Describe returns the doc comment of a type for a reader of JSON.
func (p *Page) Describe(id string) string {
	p.t.Helper()
	t := p.Type(p.t, id)
	return p.text(t, t.Name, t.Doc)
}

// Table returns the fields of a struct as a Markdown table, those without that are named left out. A
// field without a comment and without a usual text is an error of the test.
func (p *Page) Table(id string, without ...string) string {
	p.t.Helper()
	var b strings.Builder
	b.WriteString("| field | type | meaning |\n|---|---|---|\n")
	rows := 0
	p.rows(&b, id, without, &rows)
	if rows == 0 {
		return "It has no fields.\n"
	}
	return b.String()
}

func (p *Page) rows(b *strings.Builder, id string, without []string, rows *int) {
	t := p.Type(p.t, id)
	for i, f := range t.Fields {
		if f.Inline {
			p.rows(b, strings.TrimPrefix(f.Type, "*"), append(without, above(t)...), rows)
			continue
		}
		if slices.Contains(without, f.JSON) {
			continue
		}
		*rows++
		text := p.fieldText(t, i)
		if text == "" {
			p.t.Errorf("%s.%s: got no comment, want one: it is the text of the reference", id, f.Name)
		}
		name := "`" + f.JSON + "`"
		if f.Always {
			name += " \\*"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, p.typeName(f.Type), strings.ReplaceAll(text, "|", "\\|"))
	}
}

// fieldText returns the text of a field: its comment, or else its usual text. Empty: there is none. A
// comment that a reader of JSON does not understand is an error of the test.
func (p *Page) fieldText(t *Type, i int) string {
	p.t.Helper()
	f := t.Fields[i]
	if f.Doc == "" {
		return p.Usual[f.JSON]
	}
	text := p.text(t, f.Name, f.Doc)
	if word := ofGo.FindString(inCodeText.ReplaceAllString(text, "")); word != "" {
		p.t.Errorf("%s.%s: got the comment %q, want one without the Go name %s: it is the text of the reference", t.ID, f.Name, text, word)
	}
	return text
}

// above are the names of a struct's own fields, which hide those of a struct in it.
func above(t *Type) (names []string) {
	for _, f := range t.Fields {
		if !f.Inline {
			names = append(names, f.JSON)
		}
	}
	return names
}

// plain are the names of types as a reader of JSON has them.
var plain = map[string]string{
	"any": "any JSON", "byte": "number", "uint8": "number", "bool": "true or false", "float64": "number", "int": "number", "int64": "number", "string": "text", "uint64": "number", "uint32": "number",
	"[]byte": "text in base64", "time.Time": "time", "json.RawMessage": "any JSON",
	"messages.AgentID": "address", "messages.Digest": "SHA-256 in hex", "messages.EventNumber": "number of an event", "messages.Epoch": "number",
	"messages.CallID": "id of a call", "messages.TurnID": "id of a turn", "messages.FrameID": "id of a frame", "messages.Partition": "number", "messages.Span": "duration, such as `10m`",
	"messages.TraceContext": "text", "messages.Cost": "number", "map[string]string": "object of texts", "map[string][]string": "object of lists",
}

// typeName returns the name of a type as a reader of JSON has it.
func (p *Page) typeName(typ string) string {
	typ = strings.TrimPrefix(typ, "*")
	if name := plain[typ]; name != "" {
		return name
	}
	if of, list := strings.CutPrefix(typ, "[]"); list {
		return "list of " + p.typeName(of)
	}
	if link := p.Elsewhere[typ]; link != "" {
		return "[" + words(typ[strings.LastIndexByte(typ, '.')+1:]) + "](" + link + ")"
	}
	t := p.Type(p.t, typ)
	if t.Fields == nil && len(t.Values) == 0 && !strings.HasPrefix(t.Under, "[]") {
		return p.typeName(t.Under)
	}
	if !p.known[typ] {
		p.known[typ] = true
		p.shared = append(p.shared, typ)
	}
	return "[" + p.title(typ) + "](#" + anchor(p.title(typ)) + ")"
}

// title returns the heading of a type: its name in words, after that of its package if another
// type on the page has the same name.
func (p *Page) title(id string) string {
	pkg, name, _ := strings.Cut(id, ".")
	title := words(name)
	for _, other := range p.shared {
		if other == id {
			break
		}
		if strings.HasSuffix(other, "."+name) {
			return pkg + " " + title
		}
	}
	return title
}

// words is a name of Go in words.
func words(name string) string { return strings.ToLower(humps.ReplaceAllString(name, "$1 $2")) }

var humps = regexp.MustCompile(`([a-z])([A-Z])`)

// Anchor returns the address of a heading within its page.
func anchor(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }

// Shared returns a section for each type that the tables so far have named, and for those that these
// sections name.
func (p *Page) Shared() string {
	p.t.Helper()
	var b strings.Builder
	for i := 0; i < len(p.shared); i++ {
		t := p.Type(p.t, p.shared[i])
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", p.title(t.ID), Wrap(p.Describe(t.ID)))
		switch {
		case t.Fields != nil:
			b.WriteString(p.Table(t.ID) + "\n")
		case len(t.Values) > 0:
			b.WriteString(p.Values(t.ID) + "\n")
		default:
			fmt.Fprintf(&b, "It is a %s.\n\n", p.typeName(t.Under))
		}
	}
	return b.String()
}

// Values returns the constants of a type as a Markdown table. A constant without a comment is an
// error of the test.
func (p *Page) Values(id string) string {
	p.t.Helper()
	t := p.Type(p.t, id)
	var b strings.Builder
	b.WriteString("| value | meaning |\n|---|---|\n")
	for _, v := range t.Values {
		text := p.text(t, v.Name, v.Doc)
		if text == "" {
			p.t.Errorf("%s %s: got no comment, want one: it is the text of the reference", id, v.Name)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", v.Text, text)
	}
	return b.String()
}

// text returns a comment on name, of type t or of one of its fields, for a reader of JSON: without Go
// names, and without the name that it begins with.
func (p *Page) text(t *Type, name, doc string) string {
	text := strings.Join(strings.Fields(doc), " ")
	for _, is := range []string{" is ", " are "} {
		text = strings.TrimPrefix(text, name+is)
	}
	if rest, ok := strings.CutPrefix(text, name+" reports whether "); ok {
		text = "Whether " + rest
	}
	if rest, ok := strings.CutPrefix(text, name+" "); ok && t.Name == name {
		text = rest
	}
	if wire := p.wireName(t, name); wire != "" {
		text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, "`"+wire+"`")
	}
	if text == "" {
		return ""
	}
	text = absent.ReplaceAllString(text, "Absent: ")
	pkg, _, _ := strings.Cut(t.ID, ".")
	text = goName.ReplaceAllStringFunc(text, func(word string) string {
		bare := strings.Trim(word, "[]")
		if wire := p.wireName(t, bare); wire != "" {
			return "`" + wire + "`"
		}
		if value, ok := p.consts[pkg+"."+bare]; ok && bare != name && twoHumps.MatchString(bare) {
			return "`" + value + "`"
		}
		return bare
	})
	text = inCode(text)
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// inCode returns text with the words that only a program writes in backticks.
func inCode(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 { // those between are in backticks already
		parts[i] = wireWord.ReplaceAllString(parts[i], "$1`$2`")
	}
	return strings.Join(parts, "`")
}

// wireName returns the name in JSON of a field of a type. Empty: it has no such field.
func (p *Page) wireName(t *Type, name string) string {
	for _, f := range p.wireFields(t) {
		if f.Name == name {
			return f.JSON
		}
	}
	return ""
}

// wireFields returns the fields of a type, with those of the structs in it.
func (p *Page) wireFields(t *Type) (list []Field) {
	for _, f := range t.Fields {
		if !f.Inline {
			list = append(list, f)
		} else if in := p.types[strings.TrimPrefix(f.Type, "*")]; in != nil {
			list = append(list, p.wireFields(in)...)
		}
	}
	return list
}

var (
	goName = regexp.MustCompile(`\[?\b[A-Z]\w*(\.[A-Z]\w*)?\b\]?`)
	// absent is how a comment begins to describe the zero value of what is left out then.
	absent = regexp.MustCompile(`\b(Nil|Zero): `)
	// wireWord is a word with an underscore, or the type of an event.
	wireWord = regexp.MustCompile(`(^|[\s(])([a-z]+(?:_[a-z]+)+|(?:agent|approval|child|fork|input|model|timer|tool|tools|turn)\.[a-z]+)\b`)
	twoHumps = regexp.MustCompile(`^[A-Z][a-z]+[A-Z]`)
	// ofGo is a name that only Go has: one of a package, or one of two words.
	ofGo       = regexp.MustCompile(`\b(messages|projections|actors|[A-Z]\w*)\.[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b[Nn]il\b`)
	inCodeText = regexp.MustCompile("`[^`]*`|OpenTelemetry|GenAI|JetStream|[KM]iB")
)

// Wrap returns a paragraph in lines of at most 110 characters.
func Wrap(text string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(text) {
		switch n := len([]rune(word)); {
		case width == 0:
			width = n
		case width+1+n > 110:
			b.WriteByte('\n')
			width = n
		default:
			b.WriteByte(' ')
			width += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
}

// Hold compares a generated part of a page with want, and with update writes it. The part stands
// between the comments [//]: # (generated: name) and [//]: # (end: name).
func Hold(t testing.TB, page, name, want string, update bool) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "[//]: # (generated: "+name+")\n", "[//]: # (end: "+name+")\n"
	before, rest, found := strings.Cut(string(b), begin)
	got, after, ends := strings.Cut(rest, end)
	want = "\n" + strings.Trim(want, "\n") + "\n\n"
	switch {
	case !found || !ends:
		t.Fatalf("%s: want the lines %q and %q, with a generated part between them", page, begin, end)
	case got == want:
	case update:
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: the part %s is stale: run make docs and read the diff", page, name)
	}
}
