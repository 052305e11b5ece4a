package turn_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/reprise-dev/reprise/actors/turn"
	"github.com/reprise-dev/reprise/actors/turn/turntest"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

var snapshotAgent = messages.AgentID{Tenant: "default", Kind: "test", Key: "ada"}

// imaged is the state after it was stored as a snapshot and read again.
func imaged(s *turn.State) (*turn.State, error) {
	b, err := imageBytes(s)
	if err != nil {
		return nil, err
	}
	var im turn.Snapshot
	if err := messages.DecodeSnapshot(snapshotAgent, turn.SnapshotName(), b, &im); err != nil {
		return nil, err
	}
	return im.State()
}

func imageBytes(s *turn.State) ([]byte, error) {
	im, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	return messages.EncodeSnapshot(snapshotAgent, turn.SnapshotName(), &im)
}

// imaged stores the folded state and continues with what is read again.
func (s *sim) imaged() {
	again, err := imaged(s.fold)
	if err != nil {
		s.fail("a state cannot be stored\n%v", err)
	}
	if where := s.same.states(s.fold, again, true); where != "" {
		s.fail("a state that was stored differs\nin %s", where)
	}
	s.fold = again
}

// Every field that a state has, exported or not, is in its image, but for those
// that are volatile.
func TestImageHasAllFields(t *testing.T) { // A27, A87
	want := fullState()
	got, err := imaged(want)
	if err != nil {
		t.Fatal(err)
	}
	if where := newComparer().states(want, got, true); where != "" {
		t.Errorf("a field is lost on its way through a snapshot: %s\n"+
			"An exported field comes along by itself if its type has exported fields only; any other needs a line in kept, Snapshot and State (or restore) of actors/turn/snapshot.go.\n"+
			"If events do not decide it, name it in volatile (simsame_test.go). Then raise turn.FoldVersion.", where)
	}
}

// A state that was stored knows nothing of the zone of the machine that reads it.
func TestImageForgetsZone(t *testing.T) { // A27
	got, err := imaged(fullState())
	if err != nil {
		t.Fatal(err)
	}
	if local := zoned("state", reflect.ValueOf(got).Elem()); len(local) > 0 {
		t.Errorf("these are not in UTC: %q", local)
	}
}

// zoned returns the times below v that are not in UTC; volatile fields are left out.
func zoned(name string, v reflect.Value) (list []string) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			if at := timeOf(v); at.Location() != time.UTC {
				list = append(list, name)
			}
			return list
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i).Name; !volatile[f] {
				list = append(list, zoned(name+"."+f, v.Field(i))...)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			list = zoned(name, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			list = append(list, zoned(name, v.Index(i))...)
		}
	}
	return list
}

// fullState is a state without a zero value in it; each list and map has one
// element.
func fullState() *turn.State {
	s := &turn.State{}
	fill(reflect.ValueOf(s).Elem(), new(int64))
	for i, ev := range []messages.Event{
		messages.InputAccepted{Input: "u1", Content: messages.TextContent("hi")}, messages.TurnStarted{Turn: "t1", Inputs: []string{"u1"}},
		messages.ModelCompleted{Turn: "t1", Items: []messages.Item{messages.Text(messages.RoleAssistant, "well"), {Type: messages.ItemCall, CallID: "c1", Name: "add"}}},
		messages.InputAccepted{Input: "u2", Content: messages.TextContent("and")}, messages.StatePatched{Patch: []byte(`{"a":1}`)},
	} {
		s.History.Apply(messages.EventNumber(i+1), ev)
		s.Data.Apply(messages.EventNumber(i+1), ev)
	}
	s.Record(&messages.Frame{First: 6, Time: time.Unix(7, 0), Cause: messages.Cause{Endpoint: "ctl", ID: "x", Digest: "0123456789abcdef"}, Events: make([]messages.Event, 1)})
	return s
}

// fill sets v and all below it to values that are not zero, each another one.
func fill(v reflect.Value, n *int64) {
	*n++
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, int(*n), int(*n), time.UTC)))
		return
	case reflect.TypeFor[projections.History](), reflect.TypeFor[projections.State]():
		return // see fullState; projections knows their fields
	}
	if v.Type().Name() == "window" {
		return // see fullState
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			fill(reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem(), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(*n % 100)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n % 100))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n))
	default:
		panic(fmt.Sprintf("fill does not know %s", v.Type()))
	}
}

// An image stays as it is while the state that it was taken of changes.
func TestImageIsApart(t *testing.T) {
	for seed := range uint64(40) {
		s := newSim(life{seed: seed})
		s.dice(drawLife)
		s.define()
		for s.acts = range 60 {
			s.dice(uint64(s.acts))
			s.step()
		}
		s.fromScratch()
		cut := len(s.log) / 2
		live, want := &turn.State{}, &turn.State{}
		for _, f := range s.log[:cut] {
			live.Apply(f)
			want.Apply(f)
		}
		im, err := live.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.log[cut:] {
			live.Apply(f)
		}
		b, err := messages.EncodeSnapshot(snapshotAgent, "turn-0", &im)
		if err != nil {
			t.Fatal(err)
		}
		var back turn.Snapshot
		if err := messages.DecodeSnapshot(snapshotAgent, "turn-0", b, &back); err != nil {
			t.Fatal(err)
		}
		got, err := back.State()
		if err != nil {
			t.Fatal(err)
		}
		if where := s.same.states(want, got, true); where != "" {
			t.Fatalf("seed %d: an image changed with its state: in %s", seed, where)
		}
	}
}

// What the fold makes of a log depends on its version alone: an owner of this
// build continues from what one of another build has stored.
func TestFoldVersion(t *testing.T) { // A27, A87
	file := fmt.Sprintf("testdata/fold-%d.sum", turn.FoldVersion)
	known := sums(t, file)
	got := map[string]string{"image": digestImage(t, fullState())}
	for _, story := range turntest.Files(t, "testdata") {
		log, state := digestStory(t, story.Text)
		got[log] = state
	}
	if *rewrite {
		var b strings.Builder
		for _, log := range slices.Sorted(maps.Keys(got)) {
			if sum, ok := known[log]; ok && sum != got[log] {
				t.Fatalf("%s is there: raise turn.FoldVersion, so that no snapshot of the old fold is taken for one of this", file)
			}
			fmt.Fprintf(&b, "%s %s\n", log, got[log])
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for log, sum := range got {
		switch was, ok := known[log]; {
		case !ok:
			t.Errorf("%s does not know this log: go test ./actors/turn -run FoldVersion -rewrite", file)
		case was != sum:
			t.Errorf("the fold makes something else of the log %s than it did in version %d: raise turn.FoldVersion, then go test ./actors/turn -run FoldVersion -rewrite", log, turn.FoldVersion)
		}
	}
}

func sums(t *testing.T, file string) map[string]string {
	raw, err := os.ReadFile(file)
	if err != nil && !*rewrite {
		t.Fatalf("%v: write it with go test ./actors/turn -run FoldVersion -rewrite", err)
	}
	known := make(map[string]string)
	for line := range strings.Lines(string(raw)) {
		log, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		known[log] = state
	}
	return known
}

// digestImage is the digest of a state's snapshot. The state must not have a map of
// more than one entry.
func digestImage(t *testing.T, s *turn.State) string {
	b, err := imageBytes(s)
	if err != nil {
		t.Fatal(err)
	}
	return digest(b)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}

// digestStory plays a story, and returns the digests of its log and of the states
// that the log is folded to.
func digestStory(t *testing.T, text string) (log, state string) {
	s := turntest.New(t)
	s.Play(text)
	var frames, states strings.Builder
	var folded turn.State
	for _, f := range s.Log {
		raw, err := messages.EncodeFrame(s.Env.Agent, f)
		if err != nil {
			t.Fatal(err)
		}
		frames.Write(raw)
		folded.Apply(f)
		dump(&states, reflect.ValueOf(&folded).Elem())
	}
	return digest([]byte(frames.String())), digest([]byte(states.String()))
}

// dump writes a value with the names of its fields, those that are volatile
// left out.
func dump(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			if v.CanInterface() {
				fmt.Fprint(b, v.Interface().(time.Time).UnixNano())
			}
			return
		}
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; !volatile[name] {
				b.WriteString(name + "{")
				dump(b, v.Field(i))
				b.WriteString("}")
			}
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			dump(b, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			dump(b, v.Index(i))
			b.WriteString(",")
		}
	case reflect.Map:
		entries := make([]string, 0, v.Len())
		for it := v.MapRange(); it.Next(); {
			var entry strings.Builder
			dump(&entry, it.Key())
			dump(&entry, it.Value())
			entries = append(entries, entry.String())
		}
		slices.Sort(entries)
		b.WriteString(strings.Join(entries, ";"))
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

// Whatever a snapshot holds, State returns a state that can be asked and folded on, or an error.
func FuzzImage(f *testing.F) {
	im, err := fullState().Snapshot()
	if err != nil {
		f.Fatal(err)
	}
	ids, steps, history := im.Processed.IDs, im.Processed.Steps, im.History
	f.Add(im.Rest, ids, steps)
	f.Add(im.Rest[:len(im.Rest)/2], ids, steps)
	f.Add(im.Rest, ids, []byte{0x83})
	f.Fuzz(func(t *testing.T, rest, ids, steps []byte) {
		im := turn.Snapshot{Rest: rest, History: history, Data: &projections.State{}}
		im.Processed.IDs, im.Processed.Steps = ids, steps
		s, err := im.State()
		if err != nil {
			return
		}
		s.Phase()
		s.Open()
		s.Due()
		s.Effects()
		s.Processed("x")
		s.Record(&messages.Frame{First: 7, Cause: messages.Cause{Endpoint: "ctl", ID: "y"}, Events: make([]messages.Event, 1)})
		s.Processed("y")
		if _, err := s.Snapshot(); err != nil {
			t.Errorf("what was decoded does not encode: %v", err)
		}
	})
}
