package main

import (
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/reprise-dev/reprise/cmd/internal/cli"
)

// pages are files of the tree that every archive has.
var pages = []string{"CHANGELOG.md", "LICENSE", "README.md"}

// deployment is the folder of the files that run nodes. Every archive has those of them that need no tree, below deploy.
const deployment = "cmd/dist/files"

// shared returns the files that every archive has.
func (r release) shared() ([]entry, error) {
	var entries []entry
	for _, name := range pages {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: name, data: data})
	}
	files, err := os.ReadDir(filepath.Join(r.root, filepath.FromSlash(deployment)))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "Dockerfile") {
			continue // it needs the tree
		}
		data, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(deployment), f.Name()))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: path.Join("deploy", f.Name()), data: data})
	}
	commands := cli.Root()
	complete, err := completions(commands)
	if err != nil {
		return nil, err
	}
	manual, err := r.manual(commands)
	return append(append(entries, complete...), manual...), err
}

// completions returns the scripts by which shells complete the commands of root.
func completions(root *cobra.Command) ([]entry, error) {
	var entries []entry
	for _, shell := range []struct {
		file  string
		write func(io.Writer) error
	}{
		{"_reprise", root.GenZshCompletion},
		{"reprise.bash", func(w io.Writer) error { return root.GenBashCompletionV2(w, true) }},
		{"reprise.fish", func(w io.Writer) error { return root.GenFishCompletion(w, true) }},
		{"reprise.ps1", root.GenPowerShellCompletionWithDesc},
	} {
		var out bytes.Buffer
		if err := shell.write(&out); err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: path.Join("completions", shell.file), data: out.Bytes()})
	}
	return entries, nil
}

// manual returns a man page for cmd and for each command below it.
func (r release) manual(cmd *cobra.Command) ([]entry, error) {
	var out bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Date: &r.time, Source: "reprise " + r.version, Manual: "Reprise"}
	if err := doc.GenMan(cmd, header, &out); err != nil {
		return nil, err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	entries := []entry{{name: path.Join("man", "man1", name), data: out.Bytes()}}
	for _, below := range cmd.Commands() {
		if !below.IsAvailableCommand() || below.IsAdditionalHelpTopicCommand() {
			continue
		}
		more, err := r.manual(below)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}
