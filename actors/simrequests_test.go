package actors_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
)

// aRewrite stands for what a model is given that a hook has rewritten: sentAsRecorded checks that.
const aRewrite = "what a hook has made of it"

// sentAsRecorded checks what a provider was given against the request that follows from the log alone, by
// a runtime that has no definitions.
func (h *host) sentAsRecorded(req providers.Request) {
	w := h.w
	frames, err := w.frames(req.Agent)
	if err != nil {
		w.lockAndFail("%s: %v", req.Agent, err)
		return
	}
	n := eventOf(frames, req.Call)
	if n == 0 {
		return // begin has reported that
	}
	got, err := requested(w.reader, frames, req.Agent, n)
	w.texts.mu.Lock()
	removed := w.texts.removed[req.Agent]
	w.texts.mu.Unlock()
	if removed && (err != nil || strings.Contains(got.Why, "deleted")) { // while the call was about to begin
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.fail("%s: the request of %s: %v", req.Agent, req.Call, err)
		return
	}
	if where := notSent(got, req); where != "" {
		w.fail("%s: the request of %s from the log is not what the provider received: %s", req.Agent, req.Call, where)
	}
	if !got.Matches && !got.Summary {
		w.fail("%s: the request of %s does not match: %s", req.Agent, req.Call, got.Why)
	}
}

// newReader returns a runtime that reads what nodes have stored, and runs nothing.
func newReader(w *world) *actors.Runtime {
	store := w.stage.Store()
	rt, err := actors.NewRuntime(w.t.Context(), actors.Config{Store: eventlog.Store{Log: store.Log, Blobs: store.Blobs, Snapshots: store.Snapshots, Definitions: store.Definitions}})
	if err != nil {
		w.t.Fatal(err)
	}
	return rt
}

// rewrites returns another request, in one of the ways in which hooks change it.
func rewrites(req providers.Request, r *rand.Rand) *providers.Request {
	switch r.IntN(7) {
	case 0:
		req.Instructions += " Now."
	case 1:
		req.Items = req.Items[r.IntN(len(req.Items)):]
	case 2:
		note := messages.Text(messages.RoleDeveloper, fmt.Sprint("note ", r.IntN(9), strings.Repeat(" ", r.IntN(9<<10))))
		req.Items = append([]messages.Item{note}, req.Items...)
	case 3:
		for i := range req.Items {
			if c := req.Items[i].Content; len(c) > 0 {
				c[0].Text = strings.ReplaceAll(c[0].Text, "a", "[x]")
			}
		}
	case 4:
		req.Tools = append(req.Tools[1:], providers.ToolSpec{Name: "extra", Parameters: []byte(`{ "type": "object" }`)})
	case 5:
		seed := r.Int64N(100)
		req.Settings.Seed, req.Model = &seed, "other"
	case 6:
		req.Items = append(req.Items, req.Items...)
	}
	return &req
}
