//go:build unix

package pagetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// natscli is the version of nats that is built.
const natscli = "github.com/nats-io/natscli/nats@v0.5.1"

// natsScript writes a script that runs nats, whose server is that of the page if no other is named.
func natsScript(program string) error {
	return os.WriteFile(filepath.Join(bin, "nats"), fmt.Appendf(nil, "#!/bin/sh\nNATS_URL=${NATS_URL:-nats://127.0.0.1:$PAGE_NATS} exec %q \"$@\"\n", program), 0o755)
}

// haveNats puts nats, the command line tool of NATS, beside the program. Where it is missing it is built,
// once for each machine and version.
var haveNats = sync.OnceValue(func() error {
	if program, err := exec.LookPath("nats"); err == nil {
		return natsScript(program)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	_, version, _ := strings.Cut(natscli, "@")
	dir := filepath.Join(cache, "reprise-pages", version)
	program := filepath.Join(dir, "nats")
	if _, err := os.Stat(program); err != nil {
		cmd := exec.Command("go", "install", natscli)
		cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return natsScript(program)
})

// haveServer builds nats-server, as the module has it, beside the program.
var haveServer = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-o", filepath.Join(bin, "nats-server"), "github.com/nats-io/nats-server/v2")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})
