package cli

import (
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
)

// logging says what is logged, and how.
type logging struct {
	level, format string
	// node is the node that runs in this process. Empty: none is ready.
	node string
}

// logFlags adds to cmd the flags of its log; level is the usual one.
func (a *app) logFlags(cmd *cobra.Command, level slog.Level) {
	f := cmd.Flags()
	f.StringVar(&a.logging.level, "log-level", strings.ToLower(level.String()), "lowest `LEVEL` that is logged: debug, info, warn or error")
	f.StringVar(&a.logging.format, "log-format", "text", "`FORMAT` of the log on standard error: text or json")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "the same as --log-level debug")
}

// log makes the logger that the flags of logFlags choose.
func (a *app) log() (*slog.Logger, error) {
	var level slog.Level
	switch a.logging.level {
	case "debug", "info", "warn", "error":
		if err := level.UnmarshalText([]byte(a.logging.level)); err != nil {
			return nil, err
		}
	default:
		return nil, usage("--log-level %q: write debug, info, warn or error", a.logging.level)
	}
	if a.logging.format != "text" && a.logging.format != "json" {
		return nil, usage("--log-format %q: write text or json", a.logging.format)
	}
	return a.logger(level), nil
}

// logger writes what an operator must know to standard error.
func (a *app) logger(level slog.Level) *slog.Logger {
	if a.verbose {
		level = slog.LevelDebug
	}
	if a.logging.format == "json" {
		return slog.New(slog.NewJSONHandler(a.err, &slog.HandlerOptions{Level: level, ReplaceAttr: readable}))
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}

// records logs on w what is otherwise written for people; nil unless the log is JSON.
func (a *app) records(w io.Writer) *slog.Logger {
	if a.logging.format != "json" {
		return nil
	}
	log := slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: readable}))
	if a.logging.node != "" {
		log = log.With("node", a.logging.node)
	}
	return log
}

// readable writes durations as text, such as 62.4ms: a number of JSON has no unit.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
