package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/reprise-dev/reprise/messages"
)

func (a *app) blob() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "blob AGENT SHA256", GroupID: groupLook, Args: cobra.ExactArgs(2),
		Short: "Write a large payload of an agent to a file",
		Long: `Write a payload that is stored beside an agent's log, because it is too large for it, to
standard output or to a file. Events name it by its hash; the beginning of the hash is enough.
The bytes are compared with the hash while they are written: the exit code is 1 if they do not
match.`,
		Example: `  reprise blob assistant/main 3f1c9a0b2d4e --file report.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runBlob(cmd.Context(), args[0], messages.Digest(args[1]), file)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "new `FILE` to write (default: standard output)")
	return waitsFor(a.connects(cmd, 0), "all of it")
}

func (a *app) runBlob(ctx context.Context, agent string, hash messages.Digest, file string) error {
	agent, err := address(agent)
	switch {
	case err != nil:
		return err
	case a.json() && file == "":
		return usage("-o json describes a file that was written: name one with -f")
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	c, ctx, done, err := a.client(ctx)
	if err != nil {
		return err
	}
	defer done()
	if file == "" {
		return a.harmlessly(func(out io.Writer) error {
			_, err := c.Blob(ctx, agent, hash, out)
			return err
		})
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fail("name another file with -f", "%v", err)
	}
	b, err := c.Blob(ctx, agent, hash, f)
	if shut := f.Close(); err == nil {
		err = shut
	}
	if err != nil {
		_ = os.Remove(file) // half of it is of no use
		return err
	}
	if a.json() {
		return a.object(struct {
			messages.Blob
			File string `json:"file"`
		}{b, file})
	}
	a.printf("%s: %d bytes\n", file, b.Size)
	return nil
}

// harmlessly has write write to standard output, which what it writes cannot steer if that is a terminal.
func (a *app) harmlessly(write func(io.Writer) error) error {
	if !isTerminal(a.out) {
		return write(a.out)
	}
	h := &harmless{to: a.out}
	return cmp.Or(write(h), h.end())
}

// harmless is a terminal that what passes cannot steer.
type harmless struct {
	to    io.Writer
	begun []byte // the first bytes of a character, which the next write ends
}

// Write writes p with what is not printable made visible.
func (h *harmless) Write(p []byte) (int, error) {
	text := append(h.begun, p...)
	end := len(text)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			end = i
		}
	}
	_, err := io.WriteString(h.to, safe(string(text[:end])))
	h.begun = text[end:]
	return len(p), err
}

// end writes the beginning of a character that no write has ended.
func (h *harmless) end() error {
	_, err := io.WriteString(h.to, safe(string(h.begun)))
	return err
}
