package config

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// variables are what the files under testdata may find set.
func variables(name string) (string, bool) {
	v, ok := map[string]string{
		"MODEL": "demo/demo", "NAME": "Ada", "STEPS": "7", "EMPTY": "",
		"SECRET": "sk-variable-123456", "OPENAI_API_KEY": "sk-key-123456",
	}[name]
	return v, ok
}

// TestMistakes holds every file of testdata/mistakes against the exact text
// that its author would be shown.
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/mistakes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse("reprise.yaml", data, variables)
			if err == nil {
				t.Fatalf("no problem found in it: %+v", c)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err)
		})
	}
}

func golden(t *testing.T, file string, err error) {
	t.Helper()
	got := err.Error() + "\n"
	if strings.Contains(got, "sk-") {
		t.Errorf("a secret is shown:\n%s", got)
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSource(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"empty", "", "f:1:1: the file is empty; begin with agents: and one agent below it"},
		{"mark only", "\ufeff\r\n", "f:1:1: the file is empty; begin with agents: and one agent below it"},
		{"not UTF-8", "agents:\r\n  é\xff: 1", "f:2:4: this is not UTF-8 text; save the file as UTF-8"},
		{"control", "agents:\n  a\x00: 1", "f:2:4: the control character U+0000 stands here; remove it, or write it as an escape in double quotes"},
		{"large", strings.Repeat("#", MaxSize+1), "f: the file is larger than 1048576 bytes; keep long texts in files of their own"},
		{"deep flow", "agents: " + strings.Repeat("[", 100), "f:1:72: the file nests more than 64 levels deep here; flatten it"},
		{"deep block", strings.Repeat("- ", 100), "f:1:129: the file nests more than 64 levels deep here; flatten it"},
		{"words", "agents: [" + strings.Repeat("a,", maxTokens) + "]", "f: the file holds more than 100000 words and signs; split the file, or keep long lists elsewhere"},
		{"aliases", strings.Repeat("*a ", 2*maxAliases), "f:1:3001: there are more than 1000 anchors, aliases and tags; write the values out"},
		{"bomb", bomb(), "f:5:23: the file holds more than 50000 values once its aliases are followed; write less, or fewer aliases"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.data), variables)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// bomb is a file of nine lines that means a thousand million values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'i'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ",") + "]\n")
	}
	return b.String()
}

func TestLoadProblems(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "none.yaml"), "none.yaml: there is no such file; give the path of a reprise.yaml"},
		{dir, ": this is a folder, not a file; give the path of a reprise.yaml"},
	} {
		_, err := Load(c.path)
		var problems Problems
		if err == nil || !strings.HasSuffix(err.Error(), c.want) || !errors.As(err, &problems) {
			t.Errorf("Load(%s): %v, want … %s", c.path, err, c.want)
		}
	}
}

func TestManyProblems(t *testing.T) {
	var b strings.Builder
	b.WriteString("agents:\n")
	for range 150 {
		b.WriteString("  a: 5\n")
	}
	_, err := Parse("f", []byte(b.String()), variables)
	var all Problems
	if !errors.As(err, &all) || len(all) != maxProblems+1 || all[maxProblems].What != "50 more problems are not shown" {
		t.Errorf("got %d problems: %v", len(all), err)
	}
}

// TestMergeBomb merges one large mapping again and again.
func TestMergeBomb(t *testing.T) {
	data := "a: &a [" + strings.Repeat("x,", 20_000) + "]\nb: &b {l: *a }\nc:\n" + strings.Repeat("  <<: *b\n", 500)
	_, err := Parse("f", []byte(data), variables)
	if err == nil || !strings.Contains(err.Error(), "once its aliases are followed") {
		t.Errorf("got %.200v", err)
	}
}
