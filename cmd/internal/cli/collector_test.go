package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// realCollector builds and starts the OpenTelemetry collector, and returns its address and the ids of
// the spans that it takes, as they come. It skips t unless REPRISE_OTLP is set, as by make test-otlp.
func realCollector(t *testing.T) (url string, ids <-chan string) {
	t.Helper()
	if os.Getenv("REPRISE_OTLP") == "" {
		t.Skip("left to make test-otlp: it downloads and builds the collector")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "collector"))); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-mod=mod", "-o", "collector", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the collector: %v\n%s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "collector"), address)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines, ready, came := bufio.NewScanner(out), make(chan struct{}), make(chan string, 1000)
	go func() {
		for begun := false; lines.Scan(); {
			if !begun && strings.Contains(lines.Text(), "Everything is ready") {
				begun = true
				close(ready)
			}
			if id, is := strings.CutPrefix(lines.Text(), "    ID             : "); is {
				came <- id
			}
		}
	}()
	select {
	case <-ready:
	case <-t.Context().Done():
		t.Fatal("the collector is not ready")
	}
	return "http://" + address, came
}

// TestRealCollector holds that the OpenTelemetry collector takes the spans that a node sends, those
// that traces sends, and what traces prints, and that all of them are the same.
func TestRealCollector(t *testing.T) {
	url, ids := realCollector(t)
	w := newWorld(t)
	w.node("dev", "--listen", "127.0.0.1:0", "--http", "off", "--otlp", url)
	w.run("ask", "assistant/main", "What is 17 times 3?").exits(0, "51")
	taken := func() string {
		var list []string
		for range 4 {
			list = append(list, <-ids)
		}
		return strings.Join(list, " ")
	}
	live := taken()
	w.run("traces", "assistant/main", "--otlp", url).exits(0, "sent 4 spans")
	if again := taken(); again != live {
		t.Errorf("sent again were %s, first %s", again, live)
	}
	document := w.run("traces", "assistant/main", "-o", "json").exits(0).out
	resp, err := http.Post(url+"/v1/traces", "application/json", bytes.NewReader([]byte(document)))
	if err != nil || resp.StatusCode != http.StatusOK || !json.Valid([]byte(document)) {
		t.Fatalf("the collector answers %v, %v to %s", resp, err, document)
	}
	_ = resp.Body.Close()
	if printed := taken(); printed != live {
		t.Errorf("printed were %s, sent %s", printed, live)
	}
}
