package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

func search(t testing.TB, text string) Search {
	t.Helper()
	s, err := ReadSearch(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// found returns what a query finds.
func found(t testing.TB, rows iter.Seq2[Row, error]) (list []projections.Found) {
	t.Helper()
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, row.Line.(projections.Found))
	}
	return list
}

// events returns the numbers of the events in which a tenant's text is found, newest first.
func events(t testing.TB, s *Store, tenant, text string) (list []messages.EventNumber) {
	t.Helper()
	for _, f := range found(t, s.Find(t.Context(), FindQuery{Tenant: tenant, Search: search(t, text)})) {
		list = append(list, f.N)
	}
	return list
}

// say appends an input with a text.
func (w *logWriter) say(a messages.AgentID, text string) {
	w.append(a, messages.InputAccepted{Input: fmt.Sprint("u", len(w.frames[a])), Content: messages.TextContent(text)})
}

func TestFindWords(t *testing.T) {
	w, a, s := newLogWriter(1), agentID(0), open(t, file(t))
	for _, text := range []string{
		1: "Please refund order 7 of Ann Müller", 2: "refund ORDER 17", 3: "order of 7 refunds", 4: "pay:7-abc is the key",
		5: "ПРИВЕТ мир", 6: "a AND b OR NOT c NEAR d", 7: "say \"hello\x00there\" *", 8: "send_mail text: x", 9: "ends " + strings.Repeat("long ", projections.MaxSaid/5) + " beyond",
		10: "bad \xff\xfe bytes", 11: "日本語 テキスト",
	}[1:] {
		w.say(a, text)
	}
	w.apply(t, s, 4)
	for text, want := range map[string][]messages.EventNumber{
		"refund order":           {2, 1},
		"ORDER refund 7":         {1},
		`"order 7"`:              {1},
		`"order 7" ann`:          {1},
		`refund "order`:          {2, 1},
		"muller":                 {1},
		"MÜLLER":                 {1},
		"pay:7-abc":              {4},
		"7-pay:abc":              nil,
		"привет":                 {5},
		"AND":                    {6},
		"NOT c":                  {6},
		"NEAR(a b)":              nil,
		"a OR zzz":               nil,
		"refun*":                 nil,
		"text:x":                 {8},
		"{text} : x":             {8},
		"send_mail":              {8},
		"hello there":            {7},
		`"hello` + "\x00" + `th`: nil,
		"hello\x00there":         {7},
		"^ say - *":              {7},
		"long":                   {9},
		"beyond":                 nil,
		"bad bytes":              {10},
		"日本語":                    {11},
	} {
		if got := events(t, s, "default", text); !slices.Equal(got, want) {
			t.Errorf("%q: got events %v, want %v", text, got, want)
		}
	}
	if got := events(t, s, "acme", "refund"); got != nil {
		t.Errorf("another tenant: got events %v, want none", got)
	}
	one := found(t, s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, "17")}))
	want := projections.Found{Agent: a, N: 2, At: one[0].At, What: projections.FoundInput, Snippet: "refund ORDER 17"}
	if len(one) != 1 || one[0] != want {
		t.Errorf("got %+v, want %+v", one, want)
	}
	if one = found(t, s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, "ends")})); len(one[0].Snippet) > maxSnippet+8 {
		t.Errorf("snippet: got %d bytes, want at most %d", len(one[0].Snippet), maxSnippet+8)
	}
}

// Everything that was said is found, as what it was.
func TestFindWhatWasSaid(t *testing.T) {
	w, a, s := newLogWriter(1), agentID(0), open(t, file(t))
	w.append(a, messages.InputAccepted{Input: "order-7", Content: messages.TextContent("pear in")})
	w.append(a,
		messages.ModelCompleted{Turn: "t1", Items: []messages.Item{messages.Text(messages.RoleAssistant, "pear out"), {Type: messages.ItemCall, CallID: "call_1", Name: "eat", Arguments: `{"fruit":"pear"}`}}},
		messages.ToolRequested{Turn: "t1", Call: "call_1", Tool: "eat", Arguments: `{"fruit":"pear"}`},
		messages.HookDecided{Turn: "t1", Call: "call_1", Decision: "rewrite", Arguments: `{"fruit":"ripe pear"}`},
		messages.ToolStarted{Turn: "t1", Call: "call_1", Tool: "eat", Key: "key/call_1", Attempt: 1, Arguments: `{"fruit":"ripe pear"}`},
		messages.ToolCompleted{Turn: "t1", Call: "call_1", Output: "pear eaten"},
		messages.HookDecided{Turn: "t1", Decision: "finish", Answer: "pear answer"},
		messages.TurnCompleted{Turn: "t1", Output: "pear answer"},
		messages.HistoryCompacted{Text: "pear summary"})
	w.append(a, messages.ToolRequested{Turn: "t2", Call: "call_2", Tool: "eat"}, messages.ToolFailed{Turn: "t2", Call: "call_2", Message: "pear lost"})
	w.apply(t, s, 1)
	ask := func(text string) (list []string) {
		for _, f := range found(t, s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, text)})) {
			list = append(list, fmt.Sprint(f.N, " ", f.Turn, " ", f.What, " ", f.ID, ": ", f.Snippet))
		}
		return list
	}
	for text, want := range map[string][]string{
		"pear": {
			"11 t2 result : pear lost", "9  output : pear summary", "7 t1 output : pear answer", "6 t1 result : pear eaten",
			`4 t1 call : {"fruit":"ripe pear"}`, `3 t1 call : eat {"fruit":"pear"}`, "2 t1 output : pear out", "1  input : pear in",
		},
		"order-7":    {"1  input id order-7: pear in"},
		"call_1":     {`3 t1 call id call_1: eat {"fruit":"ripe pear"}`},
		"key/call_1": {`3 t1 key key/call_1: eat {"fruit":"ripe pear"}`},
	} {
		if got := ask(text); !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
		}
	}
}

// A search reads the texts of its tenant alone, and finds those of no other, whatever their names have in
// common.
func TestFindOfATenant(t *testing.T) {
	w, s := newLogWriter(1), open(t, file(t))
	for i, tenant := range []string{"acme", "acme-eu", "ACME", "_", "order", "big"} {
		for n := range i + 1 {
			w.say(messages.AgentID{Tenant: tenant, Kind: "k", Key: fmt.Sprint("a", n)}, "the order of a customer")
		}
	}
	w.apply(t, s, 4)
	for tenant, c := range map[string]struct{ read, found int }{
		"acme": {6, 1}, "acme-eu": {2, 2}, "ACME": {6, 3}, "_": {21, 4}, "order": {5, 5}, "big": {6, 6}, "none": {0, 0},
	} {
		q := FindQuery{Tenant: tenant, Search: search(t, "order")}
		read := 0
		if err := s.read.QueryRow(`SELECT count(*) FROM words WHERE words MATCH ?`, q.match()).Scan(&read); err != nil {
			t.Fatal(err)
		}
		if found := len(found(t, s.Find(t.Context(), q))); found != c.found || read != c.read {
			t.Errorf("%s: got %d of %d texts that were read, want %d of %d", tenant, found, read, c.found, c.read)
		}
		q.Search = search(t, tenant+"x")
		if n := len(found(t, s.Find(t.Context(), q))); n != 0 {
			t.Errorf("%s: %d texts have another word", tenant, n)
		}
	}
	if got := events(t, s, "big", "big"); got != nil {
		t.Errorf("the name of the tenant is found as a text: %v", got)
	}
}

func TestFindIDs(t *testing.T) {
	w, s := newLogWriter(1), open(t, file(t))
	a, b := agentID(0), agentID(2)
	w.append(a, messages.InputAccepted{Input: "01JZX4Q0AAAA"}, messages.InputAccepted{Input: "01JZX4Q0BBBB"}, messages.InputAccepted{Input: "pay:7-abc"}, messages.InputAccepted{Input: "u1"})
	w.append(b, messages.InputAccepted{Input: "01JZX4Q0AAAA"}, messages.InputAccepted{Input: "x_%_%_%"}, messages.InputAccepted{Input: "xa%b%c%"})
	w.apply(t, s, 10)
	for text, want := range map[string][]messages.EventNumber{
		"01JZX4Q0AAAA":   {1, 1},
		"01JZX4":         {1, 2, 1}, // of the newest agent, then of the other one
		"01jzx4q0aaaa":   nil,
		"01JZX":          nil,
		"u1":             {4},
		"u":              nil,
		"pay:7-abc":      {3},
		"pay:7-":         {3},
		`"pay:7-abc"`:    {3},
		"7-abc":          nil,
		"x_%_%_":         {2},
		" 01JZX4Q0BBBB ": {2},
	} {
		if got := events(t, s, "default", text); !slices.Equal(got, want) {
			t.Errorf("%q: got events %v, want %v", text, got, want)
		}
	}
}

// Pages hold what one answer does, newest first, and the filters choose from it.
func TestFindPagesAndFilters(t *testing.T) {
	w, s := newLogWriter(2), open(t, file(t))
	w.appendTurns(20, 300)
	w.apply(t, s, 50)
	base := FindQuery{Tenant: "acme", Search: search(t, "order")}
	all := found(t, s.Find(t.Context(), base))
	if len(all) < 100 || !slices.IsSortedFunc(all, func(a, b projections.Found) int { return b.At.Compare(a.At) }) {
		t.Fatalf("got %d events, want at least 100, newest first", len(all))
	}
	for _, page := range []int{1, 7, 1000} {
		var got []projections.Found
		for _, line := range lines(t, page, func(after string, limit int) func(func(Row, error) bool) {
			q := base
			q.After, q.Limit = after, limit
			return s.Find(t.Context(), q)
		}) {
			var f projections.Found
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatal(err)
			}
			got = append(got, f)
		}
		if !reflect.DeepEqual(got, all) {
			t.Errorf("pages of %d: got %d events, want the same %d as in one", page, len(got), len(all))
		}
	}
	middle := all[len(all)/2].At
	for name, c := range map[string]struct {
		change func(q *FindQuery)
		admits func(f projections.Found) bool
	}{
		"kind":   {func(q *FindQuery) { q.Kind = "billing" }, func(f projections.Found) bool { return f.Agent.Kind == "billing" }},
		"since":  {func(q *FindQuery) { q.Since = middle }, func(f projections.Found) bool { return !f.At.Before(middle) }},
		"until":  {func(q *FindQuery) { q.Until = middle }, func(f projections.Found) bool { return f.At.Before(middle) }},
		"shards": {func(q *FindQuery) { q.Shards = []int{0, 2} }, func(f projections.Found) bool { return int(f.Agent.Partition())%len(w.shards) != 1 }},
	} {
		q := base
		c.change(&q)
		want := slices.DeleteFunc(slices.Clone(all), func(f projections.Found) bool { return !c.admits(f) })
		if got := found(t, s.Find(t.Context(), q)); !reflect.DeepEqual(got, want) || len(want) == 0 || len(want) == len(all) {
			t.Errorf("%s: got %d events, want %d of %d", name, len(got), len(want), len(all))
		}
	}
}

// What is found is in one order, in any pages and from any batches: also what was said at about the
// same time, and what one event is found by twice.
func TestFindOrder(t *testing.T) {
	w := newLogWriter(7)
	var want []string
	var times []int64
	for i := range 100 {
		a, input := agentID(2*w.rand.IntN(6)), fmt.Sprint("u", i)
		if i%3 == 0 {
			input = "order-7"
		}
		w.append(a, messages.InputAccepted{Input: input, Content: messages.TextContent("order 7 came")})
		f := w.frames[a][len(w.frames[a])-1]
		f.Time = logStart.Add(time.Duration(w.rand.IntN(4)*w.rand.IntN(20)) * time.Millisecond)
		switch i % 8 {
		case 0:
			f.Time = time.Date(1950, 1, 1, 0, 0, 0, w.rand.IntN(3), time.UTC)
		case 1: // the beginning of a unit
			f.Time = time.Unix(0, logStart.UnixNano()&^withinUnit+w.rand.Int64N(3))
		}
		times = append(times, f.Time.UnixNano())
		at := position{At: f.Time.UnixNano(), Kind: a.Kind, Key: a.Key, N: int64(f.First)}
		for _, what := range []string{"input", "input id"}[:1+min(1, len(input)/7)] {
			at.What = what
			want = append(want, foundKey(at))
		}
	}
	slices.Sort(want)
	slices.Sort(times)
	ask := func(s *Store, q FindQuery, page int) (keys []string) {
		for q.Limit, q.Tenant, q.Search = page, "default", search(t, "order-7"); ; {
			n := len(keys)
			for row, err := range s.Find(t.Context(), q) {
				if err != nil {
					t.Fatal(err)
				}
				keys, q.After = append(keys, row.Key), row.Cursor
			}
			if len(keys) == n {
				return keys
			}
		}
	}
	for _, size := range []int{1, 7, 1000} {
		s := open(t, "")
		w.apply(t, s, size)
		for _, page := range []int{1, 2, 7, 1000} {
			if got := ask(s, FindQuery{}, page); !slices.Equal(got, want) {
				t.Errorf("batches of %d, pages of %d: got %d rows, want %d in their order", size, page, len(got), len(want))
			}
			since, until := times[20], times[80]
			some := slices.DeleteFunc(slices.Clone(want), func(key string) bool {
				at := ^callKey(key).at()
				return at < since || at >= until
			})
			if got := ask(s, FindQuery{Since: time.Unix(0, since), Until: time.Unix(0, until)}, page); !slices.Equal(got, some) || len(some) == 0 {
				t.Errorf("batches of %d, pages of %d, between two times: got %d rows, want %d in their order", size, page, len(got), len(some))
			}
		}
	}
}

// A page of a common word ends the search for it, and ids are searched for by their own indexes.
func TestFoundPagesAreReadInOrder(t *testing.T) {
	s := open(t, file(t))
	for _, q := range []FindQuery{{Search: search(t, "order")}, {Search: search(t, "order-7"), Kind: "k", Since: logStart, Until: logStart.Add(time.Hour), Shards: []int{1}},
		{Search: search(t, "order-7"), After: cursor(ofFind, position{})}} {
		q.Tenant, q.Limit = "default", 5
		text := plan(t, s, q.statement(position{}))
		words, ids, _ := strings.Cut(text, "; RIGHT; ")
		if !strings.HasPrefix(words, "MERGE (UNION ALL); LEFT; SCAN words VIRTUAL TABLE") || strings.Contains(words, "B-TREE") {
			t.Errorf("plan of %+v: got %s, want the words in their order", q, text)
		}
		for _, name := range []string{"items_input", "effects_call", "effects_key"} {
			if !strings.Contains(ids, "SEARCH t USING INDEX "+name) {
				t.Errorf("plan of %+v: got %s, want a search of %s", q, text, name)
			}
		}
	}
}

// More texts of one time than there are ids for it are left out; others are found.
func TestTimeWithoutFreeIDs(t *testing.T) {
	w, s := newLogWriter(8), open(t, file(t))
	if _, err := s.write.Exec(`INSERT INTO items (id, agent, n, tenant, at, what, turn, input, text) VALUES (?, 99, 1, 'acme', 0, '', '', '', '')`, logStart.UnixNano()|withinUnit); err != nil {
		t.Fatal(err)
	}
	w.say(agentID(0), "xyzzy")
	w.say(agentID(0), "xyzzy")
	w.apply(t, s, 9)
	if got := events(t, s, "default", "xyzzy"); !slices.Equal(got, []messages.EventNumber{2}) {
		t.Errorf("got events %v, want that of another time", got)
	}
}

// No search is an error of the file, whatever is in it.
func TestSearchesAreNoDamage(t *testing.T) {
	w, s := newLogWriter(3), open(t, file(t))
	w.appendTurns(5, 20)
	w.apply(t, s, 50)
	for text, want := range map[string]string{
		"": "is empty", " \t\n": "is empty", "---": "no word in it", `"" "`: "no word in it", "*": "no word", "\x00": "no word",
		strings.Repeat("x", 10<<10): "has 10240 bytes: a search has at most 1024", strings.Repeat("x ", 65): "65 words and phrases: a search has at most 64",
	} {
		if _, err := ReadSearch(text); messages.AsError(err).Code != messages.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got error %v, want %q", text, err, want)
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	parts := []string{`"`, `""`, "\x00", "AND", "OR", "NOT", "NEAR(", ")", "*", "^", "{", "}", ":", "-", "+", "'", "%", "\xff", "order", "7", " ", "\u0301", "\U0010ffff", "\x1b[31m"}
	for range 2000 {
		var text strings.Builder
		for range 1 + random.IntN(12) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		search, err := ReadSearch(text.String())
		if err == nil {
			err = first(s.Find(t.Context(), FindQuery{Tenant: "default", Search: search, Limit: 3}))
		}
		if refused := new(messages.Error); err != nil && (!errors.As(err, &refused) || refused.Code != messages.BadInput) {
			t.Fatalf("%q: got error %v, want none or a refusal", text.String(), err)
		}
	}
	select {
	case <-s.Broken():
		t.Errorf("Damage: got %v, want none", s.Damage())
	default:
	}
}

// Of the words of deleted agents no byte is left in any file: not in texts, not among the words,
// and not in what separates their pages. Words of others are found as before.
func TestDeletedWordsLeaveNothing(t *testing.T) { // A108
	for name, word := range map[string]func(n int) string{
		"between words that stay": func(n int) string { return fmt.Sprintf("w%05dxyzzy%02d", n/20*7919%100000, n%20) },
		"on pages of their own":   func(n int) string { return fmt.Sprintf("xyzzy%05d", n) },
	} {
		t.Run(name, func(t *testing.T) {
			w, path := newLogWriter(4), file(t)
			s := open(t, path)
			stays, n := agentID(0), 0
			victims := []messages.AgentID{agentID(2), agentID(4), agentID(6)}
			for i := range 12 {
				for range 10 {
					var text strings.Builder
					for range 40 {
						fmt.Fprintf(&text, "w%05d ", w.rand.IntN(100000))
					}
					w.say(stays, text.String())
				}
				var text strings.Builder
				for range 1000 {
					n++
					text.WriteString(word(n) + " ")
				}
				w.say(victims[i%3], text.String())
				w.apply(t, s, 7)
			}
			if fileContaining(t, path, "xyzzy") == "" || len(events(t, s, "default", word(1))) != 1 {
				t.Fatal("file with the words: got none, want one")
			}
			for _, a := range victims {
				w.append(a, messages.AgentDeleted{})
				w.say(stays, "w00000 once more")
				w.apply(t, s, 1)
				if _, err := s.write.Exec(`INSERT INTO words (words, rank) VALUES ('integrity-check', 1)`); err != nil {
					t.Fatalf("index of words: got error %v, want none", err)
				}
			}
			if found := fileContaining(t, path, "xyzzy"); found != "" {
				t.Errorf("file with deleted words: got %s, want none", found)
			}
			if got := events(t, s, "default", word(1)); got != nil {
				t.Errorf("a deleted word: got events %v, want none", got)
			}
			if got := events(t, s, "default", "w00000 more"); len(got) != 3 {
				t.Errorf("words that stay: got events %v, want 3", got)
			}
			var whole logWriter
			whole.frames, whole.shards = w.frames, w.shards
			again := open(t, file(t))
			whole.apply(t, again, 1000)
			for n := range 200 {
				text := fmt.Sprintf("w%05d", n*499%100000)
				if got, want := events(t, s, "default", text), events(t, again, "default", text); !slices.Equal(got, want) {
					t.Fatalf("%s: got events %v, want %v as of an index that is built again", text, got, want)
				}
			}
		})
	}
}

// Words of encrypted agents are in no file of the index. They are found by ids and keys, and
// counted until they are deleted.
func TestEncryptedWordsAreNotIndexed(t *testing.T) { // A108
	w, path, a := newLogWriter(5), file(t), agentID(0)
	s := open(t, path)
	w.say(agentID(2), "xyzzy in clear text")
	w.say(a, "before it was encrypted")
	w.apply(t, s, 10)
	w.append(a, messages.InputAccepted{Input: "input-7", Content: messages.TextContent("plugh xyzzy")},
		messages.ModelCompleted{Items: []messages.Item{messages.Text(messages.RoleAssistant, "plugh")}},
		messages.ToolRequested{Turn: "t1", Call: "call_7", Tool: "look"}, messages.ToolCompleted{Turn: "t1", Call: "call_7"})
	frames := w.frames[a]
	frames[1].KeyID = "k1"
	w.apply(t, s, 10)
	if found := fileContaining(t, path, "plugh"); found != "" {
		t.Errorf("file with encrypted words: got %s, want none", found)
	}
	if got := found(t, s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, "xyzzy")})); len(got) != 1 || got[0].Agent == a {
		t.Errorf("a word: got %+v, want that of the agent that is not encrypted", got)
	}
	for _, id := range []string{"input-7", "call_7"} {
		if got := found(t, s.Find(t.Context(), FindQuery{Tenant: "default", Search: search(t, id)})); len(got) != 1 || got[0].Agent != a {
			t.Errorf("%s: got %+v, want the encrypted agent", id, got)
		}
	}
	count := func(want int) {
		t.Helper()
		if got, err := s.Encrypted(t.Context(), "default", nil); got != want || err != nil {
			t.Errorf("encrypted agents: got %d, error %v, want %d", got, err, want)
		}
	}
	count(1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	w.append(a, messages.TurnCompleted{Turn: "t1"})
	w.apply(t, s, 10)
	count(1)
	if other, err := s.Encrypted(t.Context(), "acme", nil); other != 0 || err != nil {
		t.Errorf("encrypted agents of another tenant: got %d, error %v, want 0", other, err)
	}
	w.append(a, messages.AgentDeleted{})
	w.apply(t, s, 10)
	count(0)
}

// A call that equals an earlier one of its agent has its event, whatever happened between.
func TestRepeatedCalls(t *testing.T) {
	w, a := newLogWriter(6), agentID(0)
	call := func(turn messages.TurnID, tool, arguments string, on messages.OnUnknown) {
		id := messages.CallID("c" + turn)
		w.append(a, messages.ToolRequested{Turn: turn, Call: id, Tool: tool, Arguments: arguments})
		w.append(a, messages.ToolStarted{Turn: turn, Call: id, Tool: tool, OnUnknown: on, Attempt: 1})
		w.append(a, messages.ToolCompleted{Turn: turn, Call: id, Output: "ok"}, messages.TurnCompleted{Turn: turn})
	}
	call("t1", "refund", `{"order":7,"cents":100}`, messages.Pause)        // event 1
	call("t2", "look", `{"order":7}`, messages.ReadOnly)                   // 5
	w.append(a, messages.AgentCleared{})                                   // 9
	call("t3", "refund", `{ "cents": 1e2, "order": 7.0 }`, messages.Pause) // 10
	call("t4", "look", `{"order":7}`, messages.ReadOnly)                   // 14
	call("t5", "refund", `{"order":8,"cents":100}`, messages.Pause)        // 18
	call("t6", "refund", `{"order":7,"cents":100}`, messages.Pause)        // 22
	want := map[messages.EventNumber]messages.EventNumber{10: 1, 22: 10}
	path := file(t)
	for _, size := range []int{1, 3, 1000} {
		s := open(t, file(t))
		if size == 1 { // and the file is opened again
			s = open(t, path)
			w.apply(t, s, size)
			_ = s.Close()
			s = open(t, path)
		}
		w.apply(t, s, size)
		got := make(map[messages.EventNumber]messages.EventNumber)
		for row, err := range s.Effects(t.Context(), Query{Tenant: "default", EffectFilter: projections.EffectFilter{Repeated: true}}) {
			if err != nil {
				t.Fatal(err)
			}
			var e projections.Effect
			if err := json.Unmarshal(row.Line.(json.RawMessage), &e); err != nil {
				t.Fatal(err)
			}
			got[e.N] = e.Repeats
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("batches of %d: got %v, want %v", size, got, want)
		}
	}
	s := open(t, file(t))
	w.apply(t, s, 2)
	h, err := s.Indexed(t.Context(), a)
	if err != nil || !strings.HasSuffix(string(h.Effects[2]), `"repeats":1}`) {
		t.Errorf("held line: got %s, error %v, want one that repeats event 1", h.Effects[2], err)
	}
}
