package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/cmd/internal/config"
	"github.com/reprise-dev/reprise/eventlog/export/redact"
	"github.com/reprise-dev/reprise/messages"
)

// exporting are the flags of export.
type exporting struct {
	chosen
	to, as                    string
	redact                    []string
	at                        messages.EventNumber
	noBlobs, force, unmatched bool
}

func (a *app) export() *cobra.Command {
	var x exporting
	cmd := &cobra.Command{
		Use: "export [AGENT...]", GroupID: groupKeep,
		Short: "Write agents to a portable file: events, definitions and payloads",
		Long: `Write agents to a portable file: lines of JSON, compressed by gzip unless the name
ends in .jsonl. It holds the events of each agent up to its newest one at the time of the
export, the definitions that it followed and, without --no-blobs, its large payloads.
--as markdown writes conversations for people. --as openai writes, for each agent, a line of
messages and tools in the form that chat models are trained on.

An export is not encrypted, even if the agent is: deleting the agent does not delete it.

--redact replaces the matches of a regular expression in any text, or what the rules
in a file that ends in .yaml or .yml name:

  patterns:
    email: '[\w.+-]+@[\w.-]+\.\w+'
  paths:
    card: tool.requested.arguments.card

A value at a path is replaced wherever it occurs. Equal values are replaced by equal
texts such as [email:3f2a9c1b44de]; JSON stays JSON, and ids, numbering and hashes stay
consistent. Values in images, and in encodings other than JSON, are not found. If a rule
matches nothing, nothing is written, unless --allow-unmatched is given.

The file gets its name only when it is complete.`,
		Example: `  reprise export support/ticket-42 --to ticket-42.jsonl.gz
  reprise export --kind support --to support.jsonl.gz --redact rules.yaml
  reprise export assistant/main --to - --as markdown`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(ofAll(cmd, args, []string{"tenant"}, nil), x.check(args)); err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.runExport(ctx, x)
		},
	}
	f := cmd.Flags()
	f.StringVar(&x.to, "to", "", "`FILE` to write; - for standard output")
	f.StringVar(&x.as, "as", exportForms[0], "`FORMAT` to write: "+words(exportForms))
	x.chosen.flags(cmd)
	f.Uint64Var((*uint64)(&x.at), "at", 0, "last `EVENT`; the rest of its frame is included (default: the newest)")
	f.BoolVar(&x.noBlobs, "no-blobs", false, "leave out large payloads; they are named by size and hash")
	f.StringArrayVar(&x.redact, "redact", nil, "`REGEXP`, or file of rules, for texts to replace; may be given several times")
	f.BoolVar(&x.unmatched, "allow-unmatched", false, "write the file even if a rule matches nothing")
	f.BoolVar(&x.force, "force", false, "replace the file if it exists")
	return waitsFor(a.connects(cmd, 0), "all of it")
}

// check reads the agents that args name and refuses flags that make no sense together.
func (x *exporting) check(args []string) error {
	if x.to == "" {
		return usage("--to is missing: name the file, or - for standard output")
	}
	if err := x.chosen.check(args, "name agents, or all of a kind by --kind, or all of a tenant by --all: one of the three"); err != nil {
		return err
	}
	switch {
	case !slices.Contains(exportForms, x.as):
		return usage("--as %q: write one of %s", x.as, words(exportForms))
	case x.at != 0 && len(args) != 1:
		return usage("--at is an event of one agent: name one")
	}
	return nil
}

// redactor returns what --redact asks for; nil if nothing.
func (x *exporting) redactor() (*redact.Redactor, error) {
	if len(x.redact) == 0 {
		return nil, nil
	}
	var rules []redact.Rule
	for i, given := range x.redact {
		if strings.HasSuffix(given, ".yaml") || strings.HasSuffix(given, ".yml") {
			read, err := config.LoadRedaction(given)
			if err != nil {
				return nil, err
			}
			rules = append(rules, read...)
			continue
		}
		pattern, err := regexp.Compile(given)
		if err != nil {
			return nil, usage("--redact %q is neither a file that ends in .yaml nor a regular expression: %v", given, err)
		}
		name := "redacted"
		if i > 0 {
			name += fmt.Sprint(i + 1)
		}
		rules = append(rules, redact.Rule{Name: name, Pattern: pattern})
	}
	r, err := redact.New(rules)
	if err != nil {
		return nil, usage("%v", err)
	}
	return r, nil
}

func (a *app) runExport(ctx context.Context, x exporting) error {
	redactor, err := x.redactor()
	switch {
	case err != nil:
		return err
	case x.to == "-" && x.as == asFile && isTerminal(a.out):
		return usage("a compressed file is not for a terminal: name one with --to, or show it --as markdown")
	case x.to != "-":
		if err := writable(x.to, x.force); err != nil {
			return err
		}
		a.leftOver("export", x.to, ".", ".part")
	}
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	agents, err := x.list(ctx, c)
	if err != nil {
		return err
	}
	if len(agents) == 0 {
		return fail("`"+a.started+" ls` lists the agents", "there are no such agents: nothing was written")
	}
	run := &exportRun{app: a, exporting: x, client: c, redactor: redactor, line: a.progress(), sum: exported{Redactions: map[string]int{}}}
	write := func(w io.Writer) error { return run.write(ctx, w, agents) }
	if x.to == "-" {
		err = a.toStandardOutput(redactor != nil, write)
	} else {
		err = whole(x.to, write)
	}
	if run.line.end(); err != nil {
		return err
	}
	return a.sayExported(run.sum, x)
}

// beforeOutput is how many bytes of an export come before standard output has any: what is refused at
// once, such as an event that the agent does not have, leaves it empty.
const beforeOutput = 64 << 10

// toStandardOutput has write write there; with checked only once it has succeeded.
func (a *app) toStandardOutput(checked bool, write func(io.Writer) error) error {
	if !checked {
		return a.harmlessly(func(out io.Writer) error {
			buf := bufio.NewWriterSize(out, beforeOutput)
			if err := write(buf); err != nil {
				return err
			}
			return buf.Flush()
		})
	}
	f, err := os.CreateTemp("", "reprise-export.*.part")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
	if err := write(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return a.harmlessly(func(out io.Writer) error {
		_, err := io.Copy(out, f)
		return err
	})
}
