package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// The pages that are made of the sections, seen from this folder.
const (
	schemaFile = "../../../docs/reference/reprise.schema.json"
	page       = "../../../docs/reference/yaml.md"
)

// TestReference holds the JSON schema and the tables of the page against the sections. With
// -update it writes them: make docs.
func TestReference(t *testing.T) {
	var schema bytes.Buffer
	e := json.NewEncoder(&schema)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(Schema()); err != nil {
		t.Fatal(err)
	}
	held(t, schemaFile, schema.String())
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)(<!-- keys: ([^\n]+) -->\n).*?(<!-- end of keys -->)`)
	var found []string
	held(t, page, table.ReplaceAllStringFunc(string(text), func(s string) string {
		m := table.FindStringSubmatch(s)
		found = append(found, m[2])
		i := slices.IndexFunc(sections, func(s *section) bool { return s.title == m[2] })
		if i < 0 {
			if m[2] != redactionKeys.title {
				t.Errorf("%s has a table of %q, which is no section", page, m[2])
			}
			return m[1] + redactionKeys.table() + m[3]
		}
		return m[1] + sections[i].table() + m[3]
	}))
	examples := strings.Join(yamlBlock.FindAllString(string(text), -1), "")
	for _, s := range sections {
		if !slices.Contains(found, s.title) || !strings.Contains(string(text), "\n## "+s.title+"\n") && !strings.Contains(string(text), "\n### "+s.title+"\n") {
			t.Errorf("%s has no heading and no table of %q", page, s.title)
		}
		for _, k := range s.keys {
			if !regexp.MustCompile(`(?m)(^|[ {])` + k.name + `:( |$)`).MatchString(examples) {
				t.Errorf("no example of %s has %s", page, k.name)
			}
		}
	}
}

// held holds a file against what it should be, or writes it.
func held(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))) != want {
		t.Errorf("%s is stale: run make docs", file)
	}
}

// table is the section as a table in Markdown.
func (s *section) table() string {
	var b strings.Builder
	b.WriteString("\n| key | value | default | |\n|---|---|---|---|\n")
	for _, k := range s.keys {
		words := k.without
		if words == needed {
			words = "**required**"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, k.value.words, words, k.doc)
	}
	return b.String() + "\n"
}

// ready returns the schema, ready to validate.
func ready(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	r, err := Schema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// asJSON returns a file as an editor sees it: variables are not replaced.
func asJSON(t *testing.T, data string) any {
	t.Helper()
	c := &collector{file: "f"}
	root := parseYAML(c, []byte(data))
	if root == nil || len(c.found) > 0 {
		t.Fatalf("%s\n%v", data, c.err())
	}
	raw, err := json.Marshal((&reader{collector: c}).plain(root, verbatim))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// anyVariable has a value for each variable.
func anyVariable(name string) (string, bool) {
	if v, ok := variables(name); ok {
		return v, ok
	}
	return "some-value", true
}

// TestSchemaAccepts validates every file in the tests and pages of the tree that the reader
// accepts.
func TestSchemaAccepts(t *testing.T) {
	r, count := ready(t), 0
	for place, data := range files(t) {
		if _, err := Parse("f", []byte(data), anyVariable); err != nil {
			continue
		}
		if count++; r.Validate(asJSON(t, data)) != nil {
			t.Errorf("%s: the schema refuses what the reader accepts: %v\n%s", place, r.Validate(asJSON(t, data)), data)
		}
	}
	if t.Logf("%d files", count); count < 30 {
		t.Errorf("only %d files were found", count)
	}
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// files returns the texts of the tree's tests and pages that look like a reprise.yaml, by their
// place.
func files(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	keep := func(place, text string) {
		if strings.Contains(text, "agents:") {
			found[place] = text
		}
	}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			text, err := os.ReadFile(path)
			for i, m := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
				keep(fmt.Sprintf("%s, block %d", path, i+1), m[1])
			}
			return err
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil {
					keep(set.Position(l.Pos()).String(), s)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// within has a file for each section, in which KEY stands for one of its keys and a value.
var within = map[string][]string{
	"Top level":              {"{agents: {a: {model: demo/demo}}, KEY}"},
	"Agents":                 {"{agents: {a: {model: demo/demo, KEY}}}", "{agents: {a: {KEY}}}"},
	"Models of an agent":     {"{agents: {a: {models: [{model: demo/demo, KEY}]}}}", "{agents: {a: {models: [{KEY}]}}}"},
	"Settings":               {"{agents: {a: {model: demo/demo, settings: {KEY}}}}", "{agents: {a: {models: [{model: demo/demo, settings: {KEY}}]}}}"},
	"Budget":                 {"{agents: {a: {model: demo/demo, budget: {KEY}}}}"},
	"Budget of a turn":       {"{agents: {a: {model: demo/demo, budget: {turn: {KEY}}}}}"},
	"Budget of an agent":     {"{agents: {a: {model: demo/demo, budget: {agent: {KEY}}}}}"},
	"Compaction":             {"{agents: {a: {model: demo/demo, compact: {KEY}}}}"},
	"Tools of an MCP server": {"{agents: {a: {model: demo/demo, tools: [{mcp: s, KEY}]}}, mcp: {s: {command: [x]}}}", "{agents: {a: {model: demo/demo, tools: [{KEY}]}}}"},
	"Tools":                  {"{agents: {a: {model: demo/demo}}, tools: {t: {command: [x], description: x, KEY}}}", "{agents: {a: {model: demo/demo}}, tools: {t: {agent: a, description: x, KEY}}}", "{agents: {a: {model: demo/demo}}, tools: {t: {KEY}}}"},
	"MCP servers":            {"{agents: {a: {model: demo/demo}}, mcp: {s: {command: [x], KEY}}}", "{agents: {a: {model: demo/demo}}, mcp: {s: {KEY}}}"},
	"Providers":              {"{agents: {a: {model: demo/demo}}, providers: {p: {KEY}}}"},
	"Rules of a provider":    {"{agents: {a: {model: demo/demo}}, providers: {p: {rules: {KEY}}}}"},
	"Prices":                 {"{agents: {a: {model: demo/demo}}, prices: {demo/demo: {input: 1, output: 1, KEY}}}", "{agents: {a: {model: demo/demo}}, prices: {demo/demo: {KEY}}}"},
	"Encryption":             {"{agents: {a: {model: demo/demo}}, encryption: {KEY}}"},
	"Telemetry":              {"{agents: {a: {model: demo/demo}}, telemetry: {KEY}}"},
}

// reads returns what the reader finds wrong with a key of a section, in the file of the section
// that suits it best: the one with the fewest problems.
func reads(t *testing.T, s *section, written string) (best string) {
	t.Helper()
	least := -1
	for _, file := range within[s.title] {
		_, err := Parse("f", []byte(strings.Replace(file, "KEY", written, 1)), anyVariable)
		if err == nil {
			return ""
		}
		if strings.Contains(err.Error(), "is written twice") {
			continue // the file has the key already
		}
		n := strings.Count(err.Error(), "\n")
		if strings.Contains(err.Error(), "unknown field") {
			n += maxProblems
		}
		if least < 0 || n < least {
			least, best = n, err.Error()
		}
	}
	return best
}

// TestKeysAreRead holds that the reader accepts each key of each section, with the bounds and the
// words that the schema has, and no other key.
func TestKeysAreRead(t *testing.T) {
	for _, s := range sections {
		if len(within[s.title]) == 0 {
			t.Fatalf("no file of the test has the section %s", s.title)
		}
		if got := reads(t, s, "nonsense_: 1"); !strings.Contains(got, "unknown field") {
			t.Errorf("%s: a key that is in no section: %s", s.title, got)
		}
		schema := s.schema()
		for _, k := range s.keys {
			if got := reads(t, s, k.name+": null"); strings.Contains(got, "unknown field") {
				t.Errorf("%s: the reader does not have %s: %s", s.title, k.name, got)
			}
			if p := schema.Properties[k.name]; len(p.AnyOf) > 0 {
				bounds(t, s, k.name, p.AnyOf[0])
			}
		}
	}
}

// bounds holds the reader against the bounds and the words of a value.
func bounds(t *testing.T, s *section, key string, v *jsonschema.Schema) {
	t.Helper()
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	if v.Minimum != nil && v.Maximum != nil {
		for written, wrong := range map[string]bool{
			number(*v.Minimum): false, number(*v.Maximum): false, number(*v.Minimum - 1): true, number(*v.Maximum + 1): true,
		} {
			if got := reads(t, s, key+": "+written); strings.Contains(got, "out of range") != wrong {
				t.Errorf("%s: the reader finds of %s: %s: %s", s.title, key, written, got)
			}
		}
	}
	for _, word := range v.Enum {
		if got := reads(t, s, fmt.Sprintf("%s: %q", key, word)); strings.Contains(got, "unknown "+key) || strings.Contains(got, key+" cannot be") {
			t.Errorf("%s: the reader refuses a word of %s: %s", s.title, key, got)
		}
	}
	if v.Enum != nil {
		if got := reads(t, s, key+": nonsense_"); !strings.Contains(got, "unknown "+key) && !strings.Contains(got, key+" cannot be") && !strings.Contains(got, "for programs") {
			t.Errorf("%s: the reader accepts a word that %s does not have: %s", s.title, key, got)
		}
	}
}

// TestSchemaIsWhole holds that each description of the schema is that of a key of the page.
func TestSchemaIsWhole(t *testing.T) {
	known := make(map[string]bool)
	for _, s := range sections {
		for _, k := range s.keys {
			known[k.doc] = true
			if !strings.HasSuffix(k.doc, ".") || strings.Contains(k.doc, "|") {
				t.Errorf("%s: the text of %s must end with a full stop and have no |", s.title, k.name)
			}
		}
	}
	raw, err := json.Marshal(Schema().Properties)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, m := range regexp.MustCompile(`"description":("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(string(raw), -1) {
		var text string
		if err := json.Unmarshal([]byte(m[1]), &text); err != nil {
			t.Fatal(err)
		}
		seen[text] = true
	}
	if !maps.Equal(known, seen) {
		t.Errorf("the sections describe %d keys, the schema %d", len(known), len(seen))
	}
}

// TestSchemaRefuses holds that the schema, like the reader, refuses what it can find.
func TestSchemaRefuses(t *testing.T) {
	r := ready(t)
	for _, data := range []string{
		"{}",
		"agents: {}",
		"agents: {a: {}}",
		"agents: {a: {model: demo/demo, models: [demo/demo]}}",
		"agents: {a: {model: 5}}",
		"agents: {a: {model: demo}}",
		"agents: {a b: {model: demo/demo}}",
		"agents: {a: {modle: demo/demo}}",
		"agents: {a: {model: demo/demo, temperature: 1}}",
		"agents: {a: {model: demo/demo, instructions: [x]}}",
		"agents: {a: {model: demo/demo, max_steps: many}}",
		"agents: {a: {model: demo/demo, max_steps: 0}}",
		"agents: {a: {model: demo/demo, max_queue: 2001}}",
		"agents: {a: {model: demo/demo, when_reached: stop}}",
		"agents: {a: {model: demo/demo, prompt_approves: sometimes}}",
		"agents: {a: {model: demo/demo, approval_timeout: 30}}",
		"agents: {a: {model: demo/demo, retain: 400 days}}",
		"agents: {a: {model: demo/demo, settings: {top_p: 2}}}",
		"agents: {a: {model: demo/demo, settings: {stop: END}}}",
		"agents: {a: {model: demo/demo, settings: {hosted_tools: [{name: x}]}}}",
		"agents: {a: {model: demo/demo, settings: {extra_body: {model: x}}}}",
		"agents: {a: {model: demo/demo, budget: {turn: {max_steps: 5}}}}",
		"agents: {a: {model: demo/demo, compact: {how: sumary}}}",
		"{agents: {a: {model: demo/demo}}, tools: {t: {command: [x]}}}",
		"{agents: {a: {model: demo/demo}}, tools: {t: {description: x}}}",
		"{agents: {a: {model: demo/demo}}, tools: {t: {command: x, description: x}}}",
		"{agents: {a: {model: demo/demo}}, tools: {t: {command: [x], description: x, on_unknown: again}}}",
		"{agents: {a: {model: demo/demo}}, tools: {t: {command: [x], description: x, on_unknown: rerun, read_only: true}}}",
		"{agents: {a: {model: demo/demo}}, tools: {t: {command: [x], description: x, approval: true}}}",
		"{agents: {a: {model: demo/demo}}, tools: {t: {command: [x], description: x, wait: false}}}",
		"{agents: {a: {model: demo/demo}}, tools: {t: {agent: a, description: x, timeout: 1s}}}",
		"{agents: {a: {model: demo/demo}}, tools: {t: {command: [x], description: x, env: {9A: x}}}}",
		"{agents: {a: {model: demo/demo}}, mcp: {s: {timeout: 1s}}}",
		"{agents: {a: {model: demo/demo}}, providers: {p: {api: response}}}",
		"{agents: {a: {model: demo/demo}}, providers: {p: {rules: {refused: [tools]}}}}",
		"{agents: {a: {model: demo/demo}}, prices: {demo/demo: {input: 1}}}",
		"{agents: {a: {model: demo/demo}}, encryption: {}}",
		"{agents: {a: {model: demo/demo}}, telemetry: {endpoint: x}}",
	} {
		if _, err := Parse("f", []byte(data), variables); err == nil {
			t.Errorf("the reader accepts %s", data)
		}
		if r.Validate(asJSON(t, data)) == nil {
			t.Errorf("the schema accepts %s", data)
		}
	}
	for _, name := range []string{"agent-tools", "budgets", "compact", "mcp", "models", "no_agents", "null_agents", "profiles", "scalar", "telemetry", "types", "typos", "values"} {
		data, err := os.ReadFile(filepath.Join("testdata", "mistakes", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		c := &collector{file: name}
		root := parseYAML(c, data)
		raw, err := json.Marshal((&reader{collector: c}).plain(root, verbatim))
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		if r.Validate(v) == nil {
			t.Errorf("the schema accepts %s.yaml", name)
		}
	}
}
