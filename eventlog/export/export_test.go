package export_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/eventlog/export"
	"github.com/reprise-dev/reprise/eventlog/export/redact"
	"github.com/reprise-dev/reprise/messages"
)

// What was written and is read again yields equal frames, in order, compressed or not.
func TestRoundTrip(t *testing.T) { // A83
	for seed := range uint64(200) {
		log := anyLog(t, newRand(seed), 1+int(seed%7))
		file := written(t, export.Head{Agent: ann.Full(), Blobs: true}, log)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(file)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		for name, file := range map[string][]byte{"plain": file, "gzip": packed.Bytes()} {
			a := only(t, file)
			if !reflect.DeepEqual(a.Frames, log) {
				t.Fatalf("seed %d, %s: got %+v, want %+v", seed, name, a.Frames, log)
			}
			if a.Head.Agent != ann.Full() || !a.Head.Blobs || a.End.Last != log[len(log)-1].Last() {
				t.Fatalf("seed %d, %s: got %+v, %+v", seed, name, a.Head, a.End)
			}
		}
	}
}

// Definitions and blobs come before the first frame that names them, once, and blobs of any size come
// back in pieces; agents follow one another in a file.
func TestCopy(t *testing.T) {
	var s stored
	hash := s.define(`{"kind":"support","instructions":"Be \u003ckind\u003e"}`)
	large, empty := s.keep(strings.Repeat("0123456789abcdef", 40_000)), s.keep("")
	encrypted := *large
	encrypted.Stored = "beef"
	s.frame(messages.Cause{}, messages.AgentConfigured{Definition: hash}, messages.ToolCompleted{Call: "c1", Blob: &encrypted})
	s.frame(messages.Cause{}, messages.TurnStarted{Definition: hash}, messages.ToolCompleted{Call: "c2", Blob: large}, messages.ToolCompleted{Call: "c3", Blob: empty})
	s.frame(messages.Cause{}, messages.ToolCompleted{Call: "c4", Blob: &encrypted})
	s.frames[2].KeyID = "k1"

	var file bytes.Buffer
	for _, agent := range []string{"default/support/ann", "default/support/bob"} {
		w, err := export.NewWriter(&file, export.Head{Agent: agent, Blobs: true})
		if err != nil {
			t.Fatal(err)
		}
		missing, err := export.Copy(context.Background(), s, w, export.Options{Blobs: true})
		if err != nil || len(missing) > 0 {
			t.Fatalf("got missing %v, error %v", missing, err)
		}
		if _, err := w.Close(nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []string
	for line, err := range export.Lines(bytes.NewReader(file.Bytes())) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, kindOf(line))
	}
	one := "head definition piece piece piece piece frame piece frame frame end"
	if got := strings.Join(kinds, " "); got != one+" "+one {
		t.Errorf("got the lines %s", got)
	}
	for a, err := range export.Agents(&file) {
		if err != nil {
			t.Fatal(err)
		}
		if string(a.Definitions[messages.Digest(hash)]) != string(s.definitions[messages.Digest(hash)]) {
			t.Errorf("got definitions %s", a.Definitions)
		}
		if !reflect.DeepEqual(a.Blobs, map[messages.Digest][]byte{large.SHA256: s.blobs[large.SHA256], empty.SHA256: {}}) {
			t.Errorf("got %d blobs", len(a.Blobs))
		}
		if got := messages.BlobsOf(a.Frames[2].Events[0]); got[0] != *large || a.Frames[2].KeyID != "" {
			t.Errorf("got %+v with key %q, want the blob as it is in the file", got, a.Frames[2].KeyID)
		}
	}
}

func kindOf(l export.Line) string {
	switch {
	case l.Head != nil:
		return "head"
	case l.Definition != nil:
		return "definition"
	case l.Piece != nil:
		return "piece"
	case l.Frame != nil:
		return "frame"
	}
	return "end"
}

// What is not stored any more is named, and the rest is exported.
func TestMissing(t *testing.T) {
	var s stored
	lost := messages.Blob{SHA256: messages.DigestOf([]byte("gone")), Size: 4}
	s.frame(messages.Cause{}, messages.AgentConfigured{Definition: "d1"}, messages.ToolCompleted{Blob: &lost})
	w, err := export.NewWriter(&bytes.Buffer{}, export.Head{Agent: ann.Full(), Blobs: true})
	if err != nil {
		t.Fatal(err)
	}
	missing, err := export.Copy(context.Background(), s, w, export.Options{Blobs: true})
	if want := []messages.Digest{"d1", lost.SHA256}; err != nil || !reflect.DeepEqual(missing, want) {
		t.Errorf("got %v, error %v, want %v", missing, err, want)
	}
	if end, err := w.Close(missing, nil); err != nil || end.Blobs != 0 || end.Frames != 1 {
		t.Errorf("got %+v, error %v", end, err)
	}
}

// A damaged, foreign, cut off or newer file is refused, with its place.
func TestRefused(t *testing.T) {
	log := anyLog(t, newRand(3), 3)
	file := string(written(t, export.Head{Agent: ann.Full()}, log))
	lines := strings.SplitAfter(file, "\n") // head, three frames, end, ""
	swapped := lines[0] + lines[2] + lines[1] + lines[3] + lines[4]
	other := string(written(t, export.Head{Agent: "default/support/bob"}, log))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(file))
	_ = z.Close()
	for name, c := range map[string]struct{ file, want string }{
		"empty":               {"", "it is empty"},
		"a picture":           {"\x89PNG\r\n", "no file that `reprise export` has written"},
		"other JSON":          {`{"hello":1}` + "\n", "line 1: this is no file that"},
		"head alone":          {lines[0], "line 2: the file is cut off"},
		"cut in a line":       {file[:len(lines[0])+20], "line 2: the file is cut off"},
		"cut between lines":   {lines[0] + lines[1], "line 3: the file is cut off"},
		"no end":              {strings.TrimSuffix(file, lines[4]) + lines[0], "line 5: an agent begins before"},
		"newer format":        {strings.Replace(file, `"format":1`, `"format":2`, 1), "line 1: the file has format 2, this version reads up to 1: " + messages.ErrNewer.Error()},
		"no format":           {strings.Replace(file, `"format":1`, `"format":0`, 1), "line 1: format 0: formats begin at 1"},
		"bad address":         {strings.Replace(file, "support/ann", "sup port/ann", 1), "line 1: kind"},
		"another agent's":     {lines[0] + strings.Split(other, "\n")[1] + "\n", "line 2: checksum"},
		"frames swapped":      {swapped, "line 3: frame f0"},
		"a frame is missing":  {lines[0] + lines[1] + lines[3] + lines[4], "line 3: frame f2 begins with event"},
		"frames are missing":  {lines[0] + lines[1] + lines[2] + lines[4], "line 4: the lines of support/ann have the hash"},
		"changed JSON":        {strings.Replace(file, `"id":"f1"`, `"id":"f9"`, 1), "line 5: the lines of support/ann have the hash"},
		"unknown line":        {lines[0] + `{"what":1}` + "\n", "line 2: a line of this kind is unknown"},
		"more behind the end": {file + lines[1], "line 6: the head of an agent is expected"},
		"damaged gzip":        {packed.String()[:packed.Len()/2] + "xxxx" + packed.String()[packed.Len()/2+4:], "line "},
		"cut gzip":            {packed.String()[:packed.Len()-40], "the file is cut off"},
		"long line":           {lines[0] + strings.Repeat("x", export.MaxLine+1), "line 2: it is longer than"},
		"foreign definition":  {lines[0] + `{"definition":"ab","data":{}}` + "\n", "line 2: definition ab has the hash"},
		"foreign blob":        {lines[0] + `{"blob":"ab","size":1,"offset":0,"data":"eA=="}` + "\n", "line 2: blob ab has the hash"},
		"unfinished blob":     {lines[0] + `{"blob":"ab","size":2,"offset":0,"data":"eA=="}` + "\n" + lines[1], "line 3: blob ab has 2 bytes, 1 have come"},
		"piece too long":      {lines[0] + `{"blob":"ab","size":1,"offset":0,"data":"eHg="}` + "\n", "line 2: a piece of blob ab at 0 is expected"},
	} {
		var last error
		frames := 0
		for line, err := range export.Lines(strings.NewReader(c.file)) {
			if last = err; line.Frame != nil {
				frames++
			}
		}
		if last == nil || !strings.Contains(last.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, last, c.want)
		}
		if name == "newer format" && !errors.Is(last, messages.ErrNewer) {
			t.Errorf("%s: got %v, which is not ErrNewer", name, last)
		}
		for a := range export.Agents(strings.NewReader(c.file)) {
			if a != nil && name != "more behind the end" {
				t.Errorf("%s: an agent was given though its end was not verified", name)
			}
		}
	}
}

// A frame that does not follow, and one that is encrypted, is not written.
func TestNotWritten(t *testing.T) {
	var file bytes.Buffer
	w, err := export.NewWriter(&file, export.Head{Agent: ann.Full()})
	if err != nil {
		t.Fatal(err)
	}
	f := &messages.Frame{ID: "f1", First: 3, KeyID: "k", Events: []messages.Event{messages.AgentCleared{}}}
	if err := w.Frame(f); err != nil {
		t.Fatal(err)
	}
	if err := w.Frame(f); err == nil || !strings.Contains(err.Error(), "begins with event 3 behind event 3") {
		t.Errorf("got %v", err)
	}
	secret := &messages.Frame{ID: "f2", First: 4, KeyID: "k", Events: []messages.Event{messages.EncryptedEvent{Type: "agent.cleared", Version: 1}}}
	if err := w.Frame(secret); err == nil || !strings.Contains(err.Error(), "in clear") {
		t.Errorf("got %v", err)
	}
	for _, o := range []export.Options{{}, {Redactor: redactor(t, redact.Rule{Name: "a", Path: "*.text"})}} {
		if _, err := export.Copy(context.Background(), stored{frames: []*messages.Frame{secret}}, w, o); err == nil || !strings.Contains(err.Error(), "in clear") {
			t.Errorf("got %v", err)
		}
	}
	if err := w.Definition("ab", []byte(`{}`)); err == nil {
		t.Error("a definition of another hash was written")
	}
	if _, err := w.Close(nil, nil); err != nil {
		t.Fatal(err)
	}
	if a := only(t, file.Bytes()); len(a.Frames) != 1 || a.Frames[0].KeyID != "" || a.End.Definitions != 0 {
		t.Errorf("got %+v, %+v, want one frame that names no key", a.End, a.Frames[0])
	}
}

// Whatever a file holds, reading it ends, and what is given was verified.
func FuzzLines(f *testing.F) {
	t := &testing.T{}
	for seed := range uint64(4) {
		f.Add(written(t, export.Head{Agent: ann.Full()}, anyLog(t, newRand(seed), 2)))
	}
	f.Add([]byte(fmt.Sprintf(`{"reprise":"export","format":1,"agent":%q}`+"\n"+`{"blob":"ab","size":-1,"offset":0,"data":""}`+"\n", ann.Full())))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, file []byte) {
		for a, err := range export.Agents(bytes.NewReader(file)) {
			if err != nil {
				continue
			}
			again := written(t, a.Head, a.Frames)
			if got := only(t, again); !reflect.DeepEqual(got.Frames, a.Frames) {
				t.Fatalf("got %+v, want %+v", got.Frames, a.Frames)
			}
		}
	})
}

// The first frame of a fork's own, which names none before it, follows the last one of its prefix.
func TestFork(t *testing.T) { // A83
	var file bytes.Buffer
	w, err := export.NewWriter(&file, export.Head{Agent: ann.Full()})
	if err != nil {
		t.Fatal(err)
	}
	for i, ev := range []messages.Event{messages.AgentCleared{}, messages.AgentForked{At: 1}} {
		if err := w.Frame(&messages.Frame{ID: messages.FrameID(fmt.Sprint("f", i)), First: messages.EventNumber(i + 1), Events: []messages.Event{ev}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(nil, nil); err != nil {
		t.Fatal(err)
	}
	if a := only(t, file.Bytes()); len(a.Frames) != 2 || a.Frames[1].Prev != "f0" {
		t.Errorf("got %+v", a.Frames)
	}
}
