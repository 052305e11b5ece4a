package cluster_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/cluster"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/demo"
)

var newStores = flag.Bool("new-stores", false, "write down what a store tells that has no text beside it; an existing text is never changed")

// Every released version leaves a data folder in testdata/stores, made by its
// binary, and beside it what replay told of its agents then. (A84)
func TestStoresOfEveryVersionRead(t *testing.T) {
	stores, err := filepath.Glob("testdata/stores/*.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(stores) == 0 {
		t.Skip("no version was released yet")
	}
	for _, store := range stores {
		t.Run(filepath.Base(store), func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, store, dir)
			told := strings.TrimSuffix(store, ".tar.gz") + ".txt"
			got := tell(t, dir)
			want, err := os.ReadFile(told)
			if errors.Is(err, os.ErrNotExist) && *newStores {
				want, err = []byte(got), os.WriteFile(told, []byte(got), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the store now tells:\n%s\nit told:\n%s", got, want)
			}
		})
	}
}

// tell starts a node on a data folder and gives the replay of every agent. Its
// own kinds are none of theirs, so that nothing is recovered or changed.
func tell(t *testing.T, dir string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	node, err := cluster.Start(ctx, cluster.Config{
		Data: dir, Sync: "relaxed", Providers: providers.Set{"demo": demo.New()},
		Agents: []actors.Definition{{Kind: "reader", Model: "demo/demo"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out strings.Builder
	for row, err := range node.Client().QueryTenant(ctx, messages.DefaultTenant, messages.Query{View: "agents"}) {
		if err != nil {
			t.Fatal(err)
		}
		var agent struct{ Agent, Phase string }
		if err := json.Unmarshal(row, &agent); err != nil {
			t.Fatal(err)
		}
		out.WriteString("== " + agent.Agent + " " + agent.Phase + "\n")
		for line, err := range node.Client().Query(ctx, agent.Agent, messages.Query{View: "replay"}) {
			var change struct{ Text string }
			if err == nil {
				err = json.Unmarshal(line, &change)
			}
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(change.Text)
		}
	}
	return out.String()
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	b, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(zipped); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else if b, err = io.ReadAll(files); err == nil {
			if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
				err = os.WriteFile(path, b, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
