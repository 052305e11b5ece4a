//go:build unix

package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// The shape of the histories: clients append to a list, which is an agent's inputs,
// and read it, until it is long; then they turn to another one.
const (
	historians = 4
	longest    = 24
	lists      = 3
	historyGap = 40 * time.Millisecond
)

// listed is an operation on a list: an append, or a read if ID is empty.
type listed struct{ List, ID string }

// lists are append-only, and an id is in one once: appended again, it stays where it is. What was
// read is all there was. The state and what a read returns are the ids.
var listModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := make(map[string][]porcupine.Operation)
		for _, op := range history {
			list := op.Input.(listed).List
			by[list] = append(by[list], op)
		}
		for _, list := range slices.Sorted(maps.Keys(by)) {
			parts = append(parts, by[list])
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		have, op := state.(string), input.(listed)
		if op.ID == "" {
			return output == have, have
		}
		if strings.Contains(have, " "+op.ID+" ") {
			return true, have
		}
		return true, have + " " + op.ID + " "
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%v: %v", input, output)
	},
}

// history is what clients did to lists and what was returned. Safe for concurrent use.
type history struct {
	began time.Time

	mu   sync.Mutex
	ops  []porcupine.Operation
	used map[string]int // how many ids each list was given
	list int
}

func newHistory() *history { return &history{began: time.Now(), used: make(map[string]int)} }

// now is the time as the history has it.
func (h *history) now() int64 { return int64(time.Since(h.began)) }

// draw returns a list, and turns to another one when it was given enough.
func (h *history) draw(r *rand.Rand) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.list + r.IntN(lists)
	list := fmt.Sprintf("%s/list/l%d", tenants[n%len(tenants)], n)
	if h.used[list]++; h.used[list] > longest {
		h.list++
	}
	return list
}

// begin enters an operation that may never return, and returns what ends it.
func (h *history) begin(client int, op listed) (end func(output any)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.ops)
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op, Call: h.now(), Return: math.MaxInt64})
	return func(output any) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ops[i].Output, h.ops[i].Return = output, h.now()
	}
}

// done are the operations of now. A read that did not return says nothing.
func (h *history) done() (ops []porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, op := range h.ops {
		if op.Return < math.MaxInt64 || op.Input.(listed).ID != "" {
			ops = append(ops, op)
		}
	}
	return ops
}

// record appends and reads until the load is to end.
func (h *history) record(w *world, number int) {
	r := rand.New(rand.NewPCG(*seed, 1<<48+uint64(number)))
	past := make(map[string]string)
	for n := 1; ; n++ {
		select {
		case <-w.stopping:
			return
		case <-w.ctx.Done():
			return
		case <-time.After(historyGap):
		}
		list := h.draw(r)
		if r.IntN(2) == 0 {
			h.read(w, number, list)
			continue
		}
		id := fmt.Sprintf("h%d-%d", number, n)
		if r.IntN(5) == 0 && past[list] != "" {
			id = past[list]
		}
		past[list] = id
		end := h.begin(number, listed{list, id})
		if _, err := w.insist(func(d *endpoint) error { return appendTo(d, list, id) }); err == nil {
			end(nil)
		} else {
			w.fault("%s cannot be appended to %s: %v", id, list, err)
		}
	}
}

// appendTo returns when the input is in the agent's log.
func appendTo(d *endpoint, list, id string) error {
	in := messages.Input{ID: id, Content: messages.TextContent(plan{}.text(id))}
	for e, err := range d.client.AskFacts(d.ctx, list, in) {
		if err != nil {
			return err
		}
		if e.N > 0 {
			return nil
		}
	}
	return errors.New("the stream ended before anything was told")
}

// read reads a list through some node, once.
func (h *history) read(w *world, number int, list string) {
	d, err := w.system.open(w.ctx)
	if err != nil {
		return
	}
	defer d.close()
	end := h.begin(number, listed{List: list})
	if ids, err := readList(d, list); err == nil {
		end(ids)
	}
}

// readList returns the ids in order, as the model's state has them.
func readList(d *endpoint, list string) (ids string, err error) {
	for line, err := range d.client.Query(d.ctx, list, messages.Query{View: "events"}) {
		var refused *messages.Error
		if errors.As(err, &refused) && refused.Code == messages.NotFound {
			return "", nil
		}
		var e client.Event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			return "", err
		}
		if e.Type == "input.accepted" {
			ids += " " + field(e).Input + " "
		}
	}
	return ids, nil
}

// checkTime is how long a history may take to be checked.
const checkTime = time.Minute

// prove holds that the history is one of lists.
func (h *history) prove(w *world) string {
	ops := h.done()
	reads := 0
	for _, op := range ops {
		if op.Input.(listed).ID == "" {
			reads++
		}
	}
	result, info := porcupine.CheckOperationsVerbose(listModel, ops, checkTime)
	if result != porcupine.Ok {
		path := w.dir + "/history.html"
		if err := porcupine.VisualizePath(listModel, info, path); err != nil {
			w.t.Error(err)
		}
		w.t.Errorf("seed %d: the history of %d operations is %s: see %s", *seed, len(ops), result, path)
	}
	return fmt.Sprintf("%d operations, %d of them reads: %s", len(ops), reads, result)
}
