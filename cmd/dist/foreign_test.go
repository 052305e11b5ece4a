package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The deployment files are what Kubernetes, docker compose and Prometheus read. Their parsers are in
// a module of their own, since they are larger than all that Reprise needs.
func TestForeign(t *testing.T) {
	long(t)
	files, err := filepath.Abs("files")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "foreign")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join("testdata", "foreign")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), program, files)
	var lines []string
	for _, query := range queries(t) {
		lines = append(lines, strings.Join(strings.Fields(query), " "))
	}
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
