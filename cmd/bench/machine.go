package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/reprise-dev/reprise/eventlog/natslog/embedded"
)

// header tells what is measured on.
func (l *lab) header(ctx context.Context) error {
	fsync, err := l.fsync(ctx)
	if err != nil {
		return err
	}
	server, err := l.serverVersion()
	if err != nil {
		return err
	}
	var to io.Writer = l.Out
	if l.JSON {
		to = l.Progress
		if err := l.out.add(Row{Figure: "append and fsync of 1 KB to a file, p50", Agents: 1, Value: milliseconds(fsync), Unit: "ms"}); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(to, "%d cores %s/%s, %s, nats-server %s, sync %s, append+fsync of 1 KB %.3f ms p50 in %s\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), server, strings.Join(l.Sync, " and "), milliseconds(fsync), filepath.Dir(l.dir))
	return err
}

// serverVersion is that of the NATS server in this program, as it tells it.
func (l *lab) serverVersion() (version string, err error) {
	s, err := embedded.Start(embedded.Config{Dir: filepath.Join(l.dir, "version"), DontListen: true, Sync: embedded.SyncRelaxed})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Shutdown()) }()
	nc, err := s.Connect()
	if err != nil {
		return "", err
	}
	defer nc.Close()
	return nc.ConnectedServerVersion(), nil
}

// fsync is the median time to append 1 KB to a file and have it on disk.
func (l *lab) fsync(ctx context.Context) (time.Duration, error) {
	f, err := os.Create(filepath.Join(l.dir, "fsync"))
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
	return quantile(took, 0.5), nil
}
