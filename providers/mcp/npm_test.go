package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/providers/mcp"
	"github.com/reprise-dev/reprise/providers/tool"
)

// installed installs servers from the npm registry. It skips t unless REPRISE_MCP is set, as by make
// test-mcp.
func installed(t *testing.T) (program func(name string) string) {
	t.Helper()
	if os.Getenv("REPRISE_MCP") == "" {
		t.Skip("left to make test-mcp: it needs npm")
	}
	dir := t.TempDir()
	npm := exec.Command("npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts",
		"@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31")
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	return func(name string) string { return filepath.Join(dir, "node_modules", ".bin", name) }
}

// A37: a real MCP server (stdio and HTTP): its tools are listed with schemas, called, cancelled,
// and its death is a tool error.
func TestRealServers(t *testing.T) {
	program := installed(t)
	t.Run("files", func(t *testing.T) { files(t, program("mcp-server-filesystem")) })
	t.Run("stdio", func(t *testing.T) {
		everything(t, ready(t, mcp.Config{Name: "everything", Command: []string{program("mcp-server-everything")}}))
	})
	t.Run("http", func(t *testing.T) {
		url, kill := listening(t, program("mcp-server-everything"))
		s := ready(t, mcp.Config{Name: "everything", URL: url})
		everything(t, s)
		all := tools(t, s)
		died := make(chan struct{})
		ctx := tool.WithProgress(t.Context(), func(string) {
			select {
			case <-died:
			default:
				kill()
				close(died)
			}
		})
		_, err := all["trigger-long-running-operation"].Call(ctx, []byte(`{"duration":60,"steps":600}`))
		if err == nil || !strings.Contains(err.Error(), "MCP server everything did not answer") {
			t.Errorf("the death of the server gives %v", err)
		}
		if got := call(t.Context(), all["echo"], `{"message":"x"}`); !strings.HasPrefix(got, "error: MCP server everything") {
			t.Errorf("a server that is gone gives %q", got)
		}
	})
}

func everything(t *testing.T, s *mcp.Server) {
	all := tools(t, s)
	if spec := all["get-sum"].Spec(); !strings.Contains(string(spec.Parameters), `"First number"`) || spec.OnUnknown != tool.ReadOnly {
		t.Errorf("get-sum is %+v with %s", spec, spec.Parameters)
	}
	for _, c := range []struct{ name, arguments, want string }{
		{"echo", `{"message":"hello"}`, "Echo: hello"},
		{"get-sum", `{"a":2,"b":40}`, "42"},
		{"get-sum", `{"a":"x","b":40}`, "error: the arguments do not fit: a: "},
		{"get-tiny-image", `{}`, "[an image, image/png, "},
		{"get-structured-content", `{"location":"Chicago"}`, `"temperature":`},
	} {
		if got := call(t.Context(), all[c.name], c.arguments); !strings.Contains(got, c.want) {
			t.Errorf("%s(%s) gives %.200q, want %q", c.name, c.arguments, got, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ctx = tool.WithProgress(ctx, func(string) { cancel() })
	if _, err := all["trigger-long-running-operation"].Call(ctx, []byte(`{"duration":60,"steps":600}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call gives %v", err)
	}
	if got := call(t.Context(), all["echo"], `{"message":"again"}`); got != "Echo: again" {
		t.Errorf("after it a call gives %q", got)
	}
}

func files(t *testing.T, program string) {
	dir := t.TempDir()
	s := ready(t, mcp.Config{Name: "files", Command: []string{program, dir}})
	all := tools(t, s, mcp.Selection{Only: []string{"read_*", "write_file"}, Prefix: "fs_"})
	for name, want := range map[string]tool.OnUnknown{"fs_read_text_file": tool.ReadOnly, "fs_write_file": tool.Pause} {
		if all[name] == nil || all[name].Spec().OnUnknown != want {
			t.Fatalf("%s is not a tool with on_unknown %s among %v", name, want, all)
		}
	}
	at := filepath.ToSlash(filepath.Join(dir, "a.txt"))
	if got := call(t.Context(), all["fs_write_file"], `{"path":"`+at+`","content":"kept"}`); strings.HasPrefix(got, "error") {
		t.Error(got)
	}
	if got := call(t.Context(), all["fs_read_text_file"], `{"path":"`+at+`"}`); got != "kept" {
		t.Errorf("the file holds %q", got)
	}
	if got := call(t.Context(), all["fs_read_text_file"], `{"path":"/elsewhere"}`); !strings.HasPrefix(got, "error: Access denied") {
		t.Errorf("a file elsewhere gives %q", got)
	}
}

// listening starts a server over HTTP.
func listening(t *testing.T, program string) (url string, kill func()) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	cmd := exec.Command(program, "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	kill = func() { _ = cmd.Process.Kill() }
	t.Cleanup(func() { kill(); <-ended; _ = cmd.Wait() })
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "listening on port") {
	}
	go func() {
		defer close(ended)
		for lines.Scan() { // it would wait for a reader
		}
	}()
	return "http://127.0.0.1:" + port + "/mcp", kill
}
