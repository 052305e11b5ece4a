package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/cli"
)

// root is the tree, seen from this package.
const root = "../.."

// An archive has a man page for each command, a script for each shell, and the files to deploy.
func TestContents(t *testing.T) {
	t.Parallel()
	r := release{root: root, version: "v0.1.0", time: noon}
	files, err := r.shared()
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string][]byte)
	for _, f := range files {
		if _, twice := names[f.name]; twice || len(f.data) == 0 {
			t.Errorf("%s is there twice, or empty", f.name)
		}
		names[f.name] = f.data
	}
	want := []string{"LICENSE", "README.md", "CHANGELOG.md", "completions/reprise.bash", "completions/_reprise", "completions/reprise.fish", "completions/reprise.ps1",
		"deploy/reprise.service", "deploy/compose.yaml", "deploy/nats.conf", "deploy/kubernetes.yaml", "deploy/grafana.json", "deploy/alerts.yaml", "man/man1/reprise.1"}
	for _, cmd := range available(cli.Root()) {
		want = append(want, "man/man1/"+strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
	}
	for _, name := range want {
		if names[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	if page := names["man/man1/reprise-serve.1"]; !bytes.Contains(page, []byte("drain-limit")) || !bytes.Contains(page, []byte("Nov 2026")) {
		t.Errorf("the man page of serve: %.300s", page)
	}
	if dockerfile := slices.IndexFunc(files, func(e entry) bool { return strings.Contains(e.name, "Dockerfile") }); dockerfile >= 0 {
		t.Error("the Dockerfile needs the tree, which an archive does not have")
	}
}

// A build leaves no archive that checksums.txt does not list.
func TestEarlierArchives(t *testing.T) {
	t.Parallel()
	r := release{root: root, out: t.TempDir(), version: "v0.1.0", time: noon}
	for _, name := range []string{"reprise_v0.0.9_linux_amd64.tar.gz", "reprise_v0.0.9_windows_amd64.zip", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(r.out, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.build(nil); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(r.out, "*"))
	if err != nil || len(files) != 2 || filepath.Base(files[0]) != "checksums.txt" || filepath.Base(files[1]) != "notes.txt" {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}

// available are the commands below cmd that a user sees.
func available(cmd *cobra.Command) (list []*cobra.Command) {
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			list = append(append(list, below), available(below)...)
		}
	}
	return list
}
