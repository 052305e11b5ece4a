package replay

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

var update = flag.Bool("update", false, "rewrite the golden screens of testdata; read the diff")

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// evil is text that would clear the screen, colour it and turn the direction of writing.
const evil = "\x1b[2J\x1b[31mred\x07\u202eevil\r\nsecond\tline"

// happened is a turn that waits for an approval and whose owner changes, and a turn that runs.
var happened = []struct {
	after time.Duration
	ev    messages.Event
}{
	{0, messages.AgentCreated{Agent: "default/support/7", By: "prompt"}},
	{0, messages.InputAccepted{Input: "u1", Disposition: messages.Started, Turn: "t3", Content: messages.TextContent("Refund order 7")}},
	{0, messages.TurnStarted{Turn: "t3", Inputs: []string{"u1"}, MaxSteps: 20}},
	{0, messages.ModelRequested{Turn: "t3", Step: 1, Attempt: 1, Call: "m4", Model: "demo/demo", Inputs: []string{"u1"}}},
	{2 * time.Second, messages.ModelCompleted{Turn: "t3", Step: 1, Call: "m4", Usage: messages.Usage{Input: 57, Output: 18}, Items: []messages.Item{{Type: messages.ItemCall, CallID: "c1", Name: "refund", Arguments: `{"order":7}`}}}},
	{0, messages.ToolRequested{Turn: "t3", Step: 1, Call: "c1", Tool: "refund", Arguments: `{"order":7}`}},
	{0, messages.ApprovalRequested{Turn: "t3", Call: "c1", Tool: "refund", Arguments: `{"order":7}`, Reason: "it is over 50"}},
	{0, messages.TurnPaused{Turn: "t3", Reason: "approval", Calls: []messages.CallID{"c1"}}},
	{4 * time.Second, messages.ApprovalGranted{Turn: "t3", Call: "c1", Tool: "refund", By: messages.ByDecision, Reason: "fine"}},
	{0, messages.TurnResumed{Turn: "t3"}},
	{0, messages.ToolStarted{Turn: "t3", Call: "c1", Tool: "refund", Attempt: 1}},
	{time.Second, messages.AgentActivated{Epoch: 2, Node: "n2", Host: "rack-4"}},
	{0, messages.ToolStarted{Turn: "t3", Call: "c1", Tool: "refund", Attempt: 2}},
	{500 * time.Millisecond, messages.ToolCompleted{Turn: "t3", Call: "c1", Output: evil}},
	{0, messages.ModelRequested{Turn: "t3", Step: 2, Attempt: 1, Call: "m15", Model: "demo/demo"}},
	{400 * time.Millisecond, messages.ModelCompleted{Turn: "t3", Step: 2, Call: "m15", Usage: messages.Usage{Input: 90, Output: 7}, Items: []messages.Item{messages.Text("assistant", "Paid.")}}},
	{0, messages.TurnCompleted{Turn: "t3", Inputs: []string{"u1"}, Output: "Paid.", Steps: 2}},
	{time.Minute, messages.InputAccepted{Input: "u2", Disposition: messages.Started, Turn: "t19", Content: messages.TextContent(evil)}},
	{0, messages.TurnStarted{Turn: "t19", Inputs: []string{"u2"}, MaxSteps: 20}},
	{0, messages.ModelRequested{Turn: "t19", Step: 1, Attempt: 1, Call: "m20", Model: "demo/demo", Inputs: []string{"u2"}}},
}

// story returns the rows of what happened up to an event.
func story(upto int) []projections.Row {
	t, at := new(projections.Timeline), began
	for i, h := range happened[:upto] {
		at = at.Add(h.after)
		t.At(at, nil)
		t.Apply(messages.EventNumber(i+1), h.ev)
	}
	return t.Rows()
}

// desk is a debugger without a terminal, driven by keys.
type desk struct {
	t *testing.T
	*model
	asked []messages.Query
	left  bool
	copy  string
}

// atDesk runs a test with a debugger of a size that has rows, in fake time.
func atDesk(t *testing.T, width, height int, rows []projections.Row, run func(*desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t: t}
		d.model = newModel("support/7", time.UTC, detailOf(t.Context(), Config{Source: d.answer, Request: asked}), func() time.Time { return began.Add(70 * time.Second) })
		d.begin(rows)
		d.send(tea.WindowSizeMsg{Width: width, Height: height})
		d.run(d.Init())
		run(d)
	})
}

// answer is a node without the view request.
func (d *desk) answer(ctx context.Context, q messages.Query) iter.Seq2[json.RawMessage, error] {
	d.asked = append(d.asked, q)
	return func(yield func(json.RawMessage, error) bool) {
		n := max(q.At, q.From)
		switch q.View {
		case "replay":
			yield(encoded(projections.Change{N: n, At: began, Type: "some.event", Summary: "x=1", Queue: []string{evil}}), nil)
		case "history":
			for i := range 40 {
				item := projections.HistoryItem{N: messages.EventNumber(i + 1), Item: messages.Text("user", fmt.Sprintf("item %d %s", i, evil))}
				if !yield(encoded(item), nil) {
					return
				}
			}
		case "state":
			yield(encoded(map[string]any{"plan": "gold", "evil": evil}), nil)
		case "events":
			yield(encoded(projections.EventJSON{N: n, Type: "some.event", Data: json.RawMessage(`{"order":7}`)}), nil)
		case "why":
			yield(json.RawMessage(`{"agent":"support/7","n":6,"chain":[{"relation":"event","agent":"support/7","n":6,"text":"refund"},
				{"relation":"asked","agent":"support/7","n":4,"text":"by the model"},{"relation":"parent","agent":"support/boss","n":3,"text":"calls support"}],
				"findings":[{"text":"it repeats a call"}]}`), nil)
		default:
			yield(nil, messages.Refuse(messages.BadInput, "view %q: an agent has the views show and events", q.View))
		}
	}
}

func encoded(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// send passes the debugger a message and does what it asks for then.
func (d *desk) send(msg tea.Msg) {
	_, cmd := d.Update(msg)
	d.run(cmd)
}

func (d *desk) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case tea.QuitMsg:
		d.left = true
	case restedMsg, detailMsg:
		d.send(msg)
	default: // the text to copy has a type of its own
		d.copy = fmt.Sprint(msg)
	}
}

var special = map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "enter": tea.KeyEnter, "tab": tea.KeyTab, "esc": tea.KeyEscape, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace}

// press presses keys: names in the table of special ones, and characters.
func (d *desk) press(keys ...string) {
	d.t.Helper()
	for _, key := range keys {
		if code, is := special[key]; is {
			d.send(tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range key {
			d.send(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

// shown returns what is on the screen, and checks that it fits and cannot steer a terminal.
func (d *desk) shown() string {
	d.t.Helper()
	lines := d.screen()
	if len(lines) != d.height {
		d.t.Errorf("the screen has %d lines, want %d", len(lines), d.height)
	}
	var b strings.Builder
	for _, line := range lines {
		plain := ansi.Strip(line)
		if w := ansi.StringWidth(plain); w > d.width {
			d.t.Errorf("line of %d columns, there are %d: %s", w, d.width, plain)
		}
		if plain != projections.Printable(plain, 0) {
			d.t.Errorf("line that is not printable: %q", plain)
		}
		b.WriteString(strings.TrimRight(plain, " ") + "\n")
	}
	return b.String()
}

// golden compares the screen with a file.
func (d *desk) golden(name string) {
	d.t.Helper()
	path, got := filepath.Join("testdata", name+".txt"), d.shown()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || got != string(want) {
		d.t.Errorf("screen %s: %v, or a difference (run with -update and review it)\ngot\n%swant\n%s", name, err, got, want)
	}
}

// has holds that the screen has texts.
func (d *desk) has(texts ...string) {
	d.t.Helper()
	screen := d.shown()
	for _, text := range texts {
		if !strings.Contains(screen, text) {
			d.t.Errorf("%q is not on the screen\n%s", text, screen)
		}
	}
}

func TestScreens(t *testing.T) {
	for _, size := range []struct{ width, height int }{{160, 20}, {110, 16}, {60, 16}, {40, 12}} {
		atDesk(t, size.width, size.height, story(len(happened)), func(d *desk) {
			name := func(what string) string { return fmt.Sprintf("%dx%d-%s", size.width, size.height, what) }
			d.golden(name("newest"))
			d.press(":6", "enter", "3", "tab")
			d.golden(name("state"))
			d.press("2", "down")
			d.golden(name("history"))
			d.press("4")
			d.golden(name("missing"))
			d.press("?")
			d.golden(name("help"))
		})
	}
}

// Nothing is wider or higher than the terminal, however small that is.
func TestAnySize(t *testing.T) {
	atDesk(t, 80, 24, story(len(happened)), func(d *desk) {
		for width := range 130 {
			for _, height := range []int{0, 1, 3, 4, 5, 30} {
				d.send(tea.WindowSizeMsg{Width: width, Height: height})
				for _, keys := range []string{"1", "2", "6", "?"} {
					d.press(keys)
					d.shown()
				}
				d.press("tab")
			}
		}
	})
}

func TestMoves(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		n    messages.EventNumber
		has  []string
	}{
		{"newest first", nil, 20, []string{"11 of 11 rows", "event 20"}},
		{"oldest", []string{"g"}, 1, nil},
		{"up", []string{"up", "k"}, 18, nil},
		{"down", []string{"home", "down", "j"}, 3, nil},
		{"beyond the ends", []string{"down", "end", "down", "home", "up"}, 1, nil},
		{"turns", []string{"[", "["}, 3, nil},
		{"next turn", []string{"[", "[", "]"}, 19, nil},
		{"no turn before", []string{"[", "[", "[", "["}, 3, nil},
		{"events of a row", []string{":6", "enter", "right", "right"}, 9, []string{"event 9, 3 of the 6 of this row"}},
		{"first event of a row", []string{":9", "enter", "left", "left", "left", "left"}, 7, nil},
		{"jump into a row", []string{":14", "enter"}, 14, []string{"5 of 11 rows"}},
		{"jump past the end", []string{":21", "enter"}, 20, []string{"there is no event 21: the newest one here is 20"}},
		{"jump to nothing", []string{":x", "enter"}, 20, []string{"type the number of an event"}},
		{"jump is left", []string{":6", "esc"}, 20, nil},
		{"search", []string{"/REFUND completed", "enter"}, 6, []string{"5 of 11 rows"}},
		{"search on", []string{"/turn", "enter", "n"}, 19, nil},
		{"search back", []string{"/demo", "enter", "N", "N"}, 15, nil},
		{"search in vain", []string{"/nothing such", "enter"}, 20, []string{"no row has all of: nothing such"}},
		{"backspace", []string{":2", "backspace", "6", "enter"}, 6, nil},
		{"filter", []string{"fmodel", "enter", "up", "up"}, 4, []string{"1 of 3 rows", "filter: model"}},
		{"filter nothing", []string{"fzebra", "enter"}, 20, []string{"no row has all of: zebra", "11 of 11 rows"}},
		{"filter is left", []string{"fmodel", "enter", "f", "enter"}, 20, []string{"11 of 11 rows"}},
		{"jump leaves the filter", []string{"fmodel", "enter", ":6", "enter"}, 6, []string{"of 11 rows"}},
		{"causes", []string{":14", "enter", "w"}, 14, []string{"it repeats a call", "event 4  asked  by the model", "support/boss at 3  parent  calls support"}},
		{"cause", []string{":14", "enter", "w", "tab", "down", "down", "down", "enter"}, 4, []string{"some.event"}},
		{"cause elsewhere", []string{":14", "enter", "w", "tab", "end", "enter"}, 14, []string{"this line names no event"}},
		{"no cause", []string{"tab", "down", "down", "enter"}, 20, []string{"this line names no event"}},
		{"help is left", []string{"?", "?"}, 20, []string{"some.event"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			atDesk(t, 120, 20, story(len(happened)), func(d *desk) {
				d.press(c.keys...)
				if d.n != c.n {
					t.Errorf("event %d is selected, want %d", d.n, c.n)
				}
				d.has(c.has...)
			})
		})
	}
}

// New rows come below and change those that are open, and the selection stays.
func TestLive(t *testing.T) {
	atDesk(t, 120, 8, story(len(happened)-1), func(d *desk) {
		d.press(":4", "enter")
		d.has("4 of 10 rows")
		before := d.shown()
		d.send(rowsMsg(story(len(happened))))
		if d.n != 4 {
			t.Errorf("event %d is selected, want 4", d.n)
		}
		d.has("4 of 11 rows", "1 new below")
		if after := d.shown(); strings.SplitN(after, "\n", 2)[1] != strings.SplitN(before, "\n", 2)[1] {
			t.Errorf("the rows have moved\n%s\n%s", before, after)
		}
		d.press("end")
		if d.n != 20 || strings.Contains(d.shown(), "new below") {
			t.Errorf("event %d is selected\n%s", d.n, d.shown())
		}
		d.send(endMsg{messages.Refuse(messages.Unavailable, "the node is gone%s", evil)})
		d.has("no new rows come: the node is gone")
	})
}

// A row of the selected filter stays selected, rows that match come, and those that do no longer go.
func TestLiveFilter(t *testing.T) {
	atDesk(t, 120, 12, story(15), func(d *desk) {
		d.press("frunning", "enter", "end")
		d.has("2 of 2 rows")
		d.send(rowsMsg(story(len(happened))))
		d.has("of 2 rows", "turn t19", "demo/demo  running")
		if strings.Contains(d.shown(), "turn t3  ") {
			t.Errorf("turn t3 does not match any more\n%s", d.shown())
		}
	})
}

// Older rows come behind the newest ones, and are counted as coming until they are there.
func TestOlderRowsCome(t *testing.T) {
	all := story(len(happened))
	tail := make([]projections.Row, 0, 4)
	for _, r := range all[len(all)-4:] {
		r.Parent = 0 // it begins before the newest events
		tail = append(tail, r)
	}
	atDesk(t, 120, 20, tail, func(d *desk) {
		d.press("up")
		d.has("3 of 4 rows", "older rows are coming")
		d.press(":2", "enter")
		d.has("event 2 is not loaded yet")
		d.send(rowsMsg(story(len(happened))[:5]))
		d.has("8 of 9 rows", "older rows are coming")
		d.send(rowsMsg(story(len(happened))))
		if d.has("10 of 11 rows"); d.n != 19 || strings.Contains(d.shown(), "coming") {
			t.Errorf("event %d is selected\n%s", d.n, d.shown())
		}
		for i, r := range d.rows.all {
			if r.N != all[i].N || r.Parent != all[i].Parent {
				t.Errorf("row %d is %+v, want %+v", i, r, all[i])
			}
		}
	})
}

// The selected row stays on its line of the screen while rows come above it.
func TestScreenStays(t *testing.T) {
	all := story(len(happened))
	line := func(d *desk) int {
		return slices.IndexFunc(strings.Split(d.shown(), "\n"), func(line string) bool { return strings.HasPrefix(line, "    15 ") })
	}
	atDesk(t, 120, 6, all[len(all)-7:], func(d *desk) {
		d.press("home", "down", "down", "down", "down")
		d.shown() // it scrolls
		d.press("up")
		before := line(d)
		d.send(rowsMsg(story(len(happened))))
		if after := line(d); d.n != 15 || after != before || before < 1 {
			t.Errorf("event %d: its line was %d and is %d", d.n, before, after)
		}
	})
}

// Whatever the order in which rows come, each is there once, in its newest form.
func TestRowsInAnyOrder(t *testing.T) {
	var batches []projections.Row
	for upto := range len(happened) + 1 {
		batches = append(batches, story(upto)...)
	}
	want := story(len(happened))
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		mixed := slices.Clone(batches)
		random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		var r rows
		r.apply([]string{"", "t3"}[seed%2])
		for len(mixed) > 0 {
			n := min(len(mixed), 1+random.IntN(9))
			r.add(slices.Clone(mixed[:n]))
			mixed = mixed[n:]
		}
		if len(r.all) != len(want) {
			t.Fatalf("seed %d: %d rows, want %d", seed, len(r.all), len(want))
		}
		var shown []messages.EventNumber
		for i, row := range r.all {
			if !reflect.DeepEqual(*row, want[i]) {
				t.Fatalf("seed %d\ngot  %+v\nwant %+v", seed, *row, want[i])
			}
			if matches(row, r.filter) {
				shown = append(shown, row.N)
			}
		}
		if len(shown) != len(r.shown) {
			t.Fatalf("seed %d: %d rows are shown, want %d", seed, len(r.shown), len(shown))
		}
	}
}

// Details are asked for when the selection rests, once, and those of another event are dropped.
func TestDetails(t *testing.T) {
	atDesk(t, 120, 20, story(len(happened)), func(d *desk) {
		asked := len(d.asked)
		_, first := d.Update(tea.KeyPressMsg{Code: tea.KeyUp})
		_, second := d.Update(tea.KeyPressMsg{Code: tea.KeyUp})
		d.run(first)
		if len(d.asked) != asked {
			t.Errorf("asked for what is not selected any more: %+v", d.asked[asked:])
		}
		d.run(second)
		if len(d.asked) != asked+1 || d.asked[asked].From != 18 {
			t.Errorf("asked for %+v, want event 18", d.asked[asked:])
		}
		d.send(detailMsg{of: wanted{tabChange, 19}, lines: []string{"late"}})
		if strings.Contains(d.shown(), "late") {
			t.Errorf("an answer about another event is shown\n%s", d.shown())
		}
		d.press("down", "up")
		if len(d.asked) != asked+2 { // 19 is new, 18 is known
			t.Errorf("asked for %+v", d.asked[asked:])
		}
		d.press("4", "1", "4")
		if got := len(d.asked) - asked; got != 4 { // a failure is asked for again
			t.Errorf("asked for %d things, want 4", got)
		}
	})
}

// A question ends when its answer is no longer wanted.
func TestDetailsAreCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		waits := func(ctx context.Context, q messages.Query) iter.Seq2[json.RawMessage, error] {
			return func(yield func(json.RawMessage, error) bool) {
				<-ctx.Done()
				ended++
				yield(nil, ctx.Err())
			}
		}
		m := newModel("support/7", time.UTC, detailOf(t.Context(), Config{Source: waits}), time.Now)
		m.begin(story(len(happened)))
		_, fetch := m.Update(m.Init()())
		go fetch()
		synctest.Wait()
		m.Update(tea.KeyPressMsg{Code: tea.KeyUp})
		synctest.Wait()
		if ended != 1 {
			t.Errorf("%d questions have ended, want 1", ended)
		}
	})
}

// The row, or the details, are copied as they are written.
func TestCopy(t *testing.T) {
	atDesk(t, 120, 20, story(len(happened)), func(d *desk) {
		d.press(":18", "enter", "y")
		if !strings.Contains(d.copy, evil) || !strings.Contains(d.copy, "support/7 event 18") {
			t.Errorf("copied %q", d.copy)
		}
		d.has("bytes copied")
		d.press("5", "tab", "y")
		if !strings.Contains(d.copy, `"order": 7`) {
			t.Errorf("copied %q", d.copy)
		}
		d.press("q")
		if !d.left {
			t.Error("q does not leave")
		}
	})
}

// All rows that can be read come, and why no more do behind them.
func TestFollow(t *testing.T) {
	all := story(len(happened))
	lines := func(yield func(json.RawMessage, error) bool) {
		for _, r := range all {
			if !yield(encoded(r), nil) {
				return
			}
		}
		_ = yield(json.RawMessage(`{"n":0,"later":true}`), nil) && yield(nil, messages.Refuse(messages.Unavailable, "gone"))
	}
	var got []projections.Row
	var end error
	follow(lines, func(msg tea.Msg) {
		switch msg := msg.(type) {
		case rowsMsg:
			got = append(got, msg...)
		case endMsg:
			end = msg.err
		}
	})
	if !reflect.DeepEqual(encodedAll(got), encodedAll(all)) || messages.AsError(end).Code != messages.Unavailable {
		t.Errorf("got %d rows of %d, then %v", len(got), len(all), end)
	}
}

func encodedAll(rows []projections.Row) (all []string) {
	for _, r := range rows {
		all = append(all, string(encoded(r)))
	}
	return all
}

// asked stands for how a request is written.
func asked(r projections.ModelRequest) string {
	return "model " + r.Model + "\n" + r.Instructions + "\n"
}

// A request is shown as its text, line by line, items as history prints them, and causes with who sent them.
func TestTexts(t *testing.T) {
	request := json.RawMessage(`{"model":"demo/demo","instructions":"Be brief.\nNever say \\no \"x\"."}`)
	if got, want := tabRequest.text(request, Config{Request: asked}), "model demo/demo\nBe brief.\nNever say \\no \"x\".\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	berlin := Config{Zone: time.FixedZone("CET", 3600)}
	if got, want := tabChange.text(encoded(projections.Change{N: 7, At: began, Type: "some.event"}), berlin), "event 7  some.event  2026-01-02 04:04:05.000 CET\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	hosted := json.RawMessage(`{"n":5,"type":"web_search","status":"completed","raw":{"q":"order 7"}}`)
	if got, want := tabHistory.text(hosted, Config{}), "event 5  web_search [completed]\n  {\"q\":\"order 7\"}\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	why := json.RawMessage(`{"agent":"support/7","n":9,"chain":[{"relation":"decided","agent":"support/7","n":9,"text":"pay was granted","command":"approve","id":"a1","endpoint":"ctl","person":{"name":"Ann Lee","claimed":true}}]}`)
	if got, want := tabWhy.text(why, Config{}), "event 9  decided  pay was granted [approve a1 by \"Ann Lee\" (claimed) through ctl]\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
