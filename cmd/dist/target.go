package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// target is a platform that a release is built for.
type target struct{ os, arch string }

// all are the platforms of a release.
var all = []target{
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"linux", "amd64"}, {"linux", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// parseTargets returns the platforms of a list such as linux/amd64,darwin/arm64, all for an empty one.
func parseTargets(list string) ([]target, error) {
	if list == "" {
		return all, nil
	}
	var chosen []target
	for name := range strings.SplitSeq(list, ",") {
		system, arch, _ := strings.Cut(name, "/")
		t := target{system, arch}
		if !slices.Contains(all, t) {
			return nil, fmt.Errorf("--only %q: the platforms are %v", name, all)
		}
		if !slices.Contains(chosen, t) {
			chosen = append(chosen, t)
		}
	}
	return chosen, nil
}

// String returns the platform as the go command writes it.
func (t target) String() string { return t.os + "/" + t.arch }

// program is the file name of the program.
func (t target) program() string {
	if t.os == "windows" {
		return "reprise.exe"
	}
	return "reprise"
}

// environ is the environment in which the go command builds for the platform. It fixes what
// would change the bytes.
func (t target) environ() []string {
	return append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
}
