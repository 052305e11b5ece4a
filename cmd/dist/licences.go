package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is how go list is asked for the module of each package that the program links.
const module = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}`

// licence is the name of a file with terms that an archive has to repeat.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|notice|copying|copyright)([-_.].*)?$`)

// licences returns the licences of the Go distribution and of every module that the program of a target links.
func (r release) licences(t target) ([]byte, error) {
	list, err := r.golang(t, "list", "-deps", "-f", module, "./cmd/reprise")
	if err != nil {
		return nil, err
	}
	goroot, err := r.golang(t, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	modules := slices.Compact(slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(list)), "\n")))
	var out bytes.Buffer
	out.WriteString("This program links the Go standard library and the modules below. Their terms follow.\n")
	for _, m := range append([]string{"Go\t" + strings.TrimSpace(string(goroot))}, modules...) {
		name, dir, _ := strings.Cut(m, "\t")
		if err := terms(&out, name, dir); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// terms writes the files with the terms of the module in dir to out.
func terms(out *bytes.Buffer, name, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, f := range files {
		if f.IsDir() || !licence.MatchString(f.Name()) {
			continue
		}
		found = true
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n---- %s: %s ----\n\n%s\n", name, f.Name(), bytes.TrimSpace(data))
	}
	if !found {
		return fmt.Errorf("%s has no licence file", name)
	}
	return nil
}
