package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type noArguments struct{}

func nothing(context.Context, noArguments) (string, error) { return "", nil }

// FuzzParse holds that no file makes the reader panic, that every mistake has
// its place inside the file, and that what is accepted can be put to use.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/mistakes/*.yaml")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data, variables)
		if err == nil {
			if _, err := c.Definitions(lookup, command); err != nil && !errors.As(err, new(Problems)) {
				t.Errorf("not a list of problems: %v", err)
			}
			return
		}
		var all Problems
		if !errors.As(err, &all) || len(all) == 0 {
			t.Fatalf("not a list of problems: %v", err)
		}
		lines := strings.Count(normalize(data), "\n") + 1
		for _, p := range all {
			if p.What == "" || p.Do == "" || p.Line < 0 || p.Line > lines || p.Line > 0 && p.Col < 1 {
				t.Errorf("%+v in a file of %d lines", p, lines)
			}
			if strings.Contains(p.Error(), "sk-variable") {
				t.Errorf("a variable is shown: %v", p)
			}
		}
	})
}
