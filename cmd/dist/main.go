// Command dist builds the archives of a release: one for each platform, with the program, its man
// pages and shell completions, and the files to deploy it. Run it from the root of the tree:
//
//	go run ./cmd/dist --version v0.1.0
//
// # Guarantees
//
//   - The same tree, Go version, --version and time give the same bytes, in any folder.
//   - The time of every file is SOURCE_DATE_EPOCH, else that of the commit.
//   - checksums.txt lists every archive, in the form that sha256sum -c reads.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// run builds the archives that args ask for.
func run(args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	r := release{}
	flags.StringVar(&r.root, "root", ".", "root of the tree")
	flags.StringVar(&r.out, "out", "dist", "folder for the archives")
	flags.StringVar(&r.version, "version", "", "version of the release, such as v0.1.0")
	only := flags.String("only", "", "platforms to build, such as linux/amd64,darwin/arm64 (default: all)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if r.version == "" || strings.ContainsAny(r.version, "/\\ ") {
		return fmt.Errorf("--version %q: write a version such as v0.1.0", r.version)
	}
	targets, err := parseTargets(*only)
	if err != nil {
		return err
	}
	if r.time, err = sourceTime(r.root); err != nil {
		return err
	}
	return r.build(targets)
}

// sourceTime is SOURCE_DATE_EPOCH, else the time of the newest commit of the tree.
func sourceTime(root string) (time.Time, error) {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		git := exec.Command("git", "log", "-1", "--format=%ct")
		git.Dir = root
		out, err := git.Output()
		if err != nil {
			return time.Time{}, errors.Join(errors.New("no commit to take the time from: set SOURCE_DATE_EPOCH to seconds since 1970"), err)
		}
		epoch = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the sources: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
