package cli

import (
	"io"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/messages"
)

// The forms of an export. asFile is the one that is read back.
const (
	asFile     = "file"
	asMarkdown = "markdown"
	asOpenAI   = "openai"
)

// exportForms are what agents are exported as, the default first.
var exportForms = []string{asFile, asMarkdown, asOpenAI}

// exporter writes an agent in one form.
type exporter interface {
	export.Sink
	// Close ends the agent and returns what was written of it.
	Close(missing []messages.Digest, redactions map[string]int) (export.End, error)
}

// newExporter begins an agent in a form.
func newExporter(as string, w io.Writer, head export.Head) (exporter, error) {
	switch as {
	case asMarkdown:
		return newMarkdown(w, head), nil
	case asOpenAI:
		return &openaiExport{gathered: newGathered(head), to: w}, nil
	}
	return export.NewWriter(w, head)
}
