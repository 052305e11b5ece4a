package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// header prints what is measured on.
func (l *Lab) header(ctx context.Context) error {
	fsync, err := l.fsync(ctx)
	if err != nil {
		return err
	}
	var to io.Writer = l.Out
	if l.JSON {
		to = l.Progress
		if err := l.Add(Row{Figure: "append and fsync of 1 KB to a file, p50", Agents: 1, Value: Milliseconds(fsync), Unit: "ms"}); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(to, "%d cores %s/%s, %s, nats-server %s, sync %s, append+fsync of 1 KB %.3f ms p50 in %s\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), serverVersion(), strings.Join(l.Sync, " and "), Milliseconds(fsync), filepath.Dir(l.Folder))
	return err
}

// serverVersion is that of the NATS server in this program, as far as it knows its modules.
func serverVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "github.com/nats-io/nats-server/") {
			return m.Version
		}
	}
	return "unknown"
}

// fsync is the median time to append 1 KB to a file and have it on disk.
func (l *Lab) fsync(ctx context.Context) (time.Duration, error) {
	f, err := os.Create(filepath.Join(l.Folder, "fsync"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	block := make([]byte, 1024)
	var took []time.Duration
	for range 100 {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return Quantile(took, 0.5), nil
}
