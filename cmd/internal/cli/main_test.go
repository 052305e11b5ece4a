package cli_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	if flag.Parse(); testing.Short() { // all that need it are skipped
		os.Exit(m.Run())
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "reprise-cli")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "reprise")
	cmd := exec.Command("go", "build", "-o", binary, "-ldflags", "-s -w -X github.com/reprise-dev/reprise/cmd/internal/cli.version=v9.8.7-test",
		"github.com/reprise-dev/reprise/cmd/reprise")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}
