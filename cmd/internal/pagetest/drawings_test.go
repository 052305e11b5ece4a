package pagetest

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// mermaid draws what pages show, in a browser that jsdom stands in for.
var mermaid = []string{"mermaid@11.17.2", "jsdom@29.1.1"}

// parseDrawings reads drawings and writes the error of each, empty if there is none.
const parseDrawings = `
import { text } from "node:stream/consumers"
import { JSDOM } from "jsdom"

globalThis.window = new JSDOM("").window
globalThis.document = window.document
const { default: mermaid } = await import("mermaid")
const errors = []
for (const drawing of JSON.parse(await text(process.stdin))) {
	errors.push(await mermaid.parse(drawing).then(() => "", (err) => "mermaid: " + err.message))
}
process.stdout.write(JSON.stringify(errors))
`

// TestDrawings holds that mermaid, which npm fetches, reads the drawings of each page.
func TestDrawings(t *testing.T) {
	if testing.Short() {
		t.Skip("fetches programs: left out with -short")
	}
	t.Parallel()
	dir := npmPackages(t, mermaid...)
	drawings, places := []string{"sequenceDiagram\n  A->>B"}, []string{"a message without a text"}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language == "mermaid" {
				drawings, places = append(drawings, b.text()), append(places, fmt.Sprintf("%s:%d", p.name, b.line))
			}
		}
	}
	in, err := json.Marshal(drawings)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", parseDrawings)
	var failure strings.Builder
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(string(in)), &failure
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &failure)
	}
	var errs []string
	if err := json.Unmarshal(out, &errs); err != nil || len(errs) != len(drawings) {
		t.Fatalf("%d drawings, and the answer is %s: %v", len(drawings), out, err)
	}
	for i, wrong := range errs {
		if i == 0 && wrong == "" || i > 0 && wrong != "" {
			t.Errorf("%s: got the error %q", places[i], wrong)
		}
	}
}
