package logtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

var damage = map[string]func(*testing.T, Opened){
	// A29
	"a flipped bit is damage": wantDamage(nil, func(t *testing.T, e eventlog.Entry) eventlog.Entry {
		e.Bytes = bytes.Clone(e.Bytes)
		e.Bytes[len(e.Bytes)/2] ^= 1
		return e
	}),
	"a cut frame is damage": wantDamage(nil, func(t *testing.T, e eventlog.Entry) eventlog.Entry {
		e.Bytes = e.Bytes[:len(e.Bytes)-3]
		return e
	}),
	"a newer format is damage": wantDamage(messages.ErrNewer, func(t *testing.T, e eventlog.Entry) eventlog.Entry {
		return newer(e)
	}),
	"a gap in the numbers is damage": wantDamage(nil, func(t *testing.T, e eventlog.Entry) eventlog.Entry {
		e.Frame.First++
		return Encode(t, e)
	}),
	"a repeated number is damage": wantDamage(nil, func(t *testing.T, e eventlog.Entry) eventlog.Entry {
		e.Frame.First--
		return Encode(t, e)
	}),
	"a broken chain is damage": wantDamage(nil, func(t *testing.T, e eventlog.Entry) eventlog.Entry {
		e.Frame.PrevDigest = messages.DigestOf([]byte("another"))
		return Encode(t, e)
	}),
	"an older epoch is damage": wantDamage(nil, func(t *testing.T, e eventlog.Entry) eventlog.Entry {
		e.Frame.Epoch--
		return Encode(t, e)
	}),
	"another agent's frame is damage": wantDamage(nil, func(t *testing.T, e eventlog.Entry) eventlog.Entry {
		moved := e
		moved.Agent = Agent("another")
		e.Bytes = Encode(t, moved).Bytes
		return e
	}),
	"the same frame stored twice is damage": func(t *testing.T, o Opened) {
		needInject(t, o)
		a := Agent("ada")
		e := Entry(t, a, eventlog.Position{})
		appended(t, o.Log, e)
		o.Inject(t, e, false)
		all, err := collect(o.Log, a, 1)
		var damaged *eventlog.DamageError
		if !errors.As(err, &damaged) || len(all) != 1 || damaged.Event != 2 {
			t.Fatalf("read %d frames, %v", len(all), err)
		}
	},
	"damage well before the event that is read from does not matter": func(t *testing.T, o Opened) {
		needInject(t, o)
		a, tail := Agent("ada"), eventlog.Position{}
		for n := range 6 {
			e := Entry(t, a, tail, large(1), large(2))
			stored := e
			if n == 1 {
				stored.Bytes = bytes.Clone(e.Bytes)
				stored.Bytes[len(e.Bytes)/2] ^= 1
			}
			o.Inject(t, stored, false)
			tail = e.Position(0)
		}
		for from, want := range map[messages.EventNumber]int{1: -1, 2: -1, 3: -1, 4: -1, 5: 4, 6: 4, 7: 3, 8: 3, 11: 1, 12: 1, 13: 0} {
			all, err := collect(o.Log, a, from)
			if damage := new(eventlog.DamageError); want < 0 && !errors.As(err, &damage) || want >= 0 && (err != nil || len(all) != want) {
				t.Errorf("from event %d: %d frames, %v", from, len(all), err)
			}
		}
	},
	"a foreign message is skipped and moves the fence only": func(t *testing.T, o Opened) {
		needInject(t, o)
		a := Agent("ada")
		foreign := eventlog.Entry{Agent: a, Bytes: []byte("who am I")}
		o.Inject(t, foreign, true)
		first := appended(t, o.Log, Entry(t, a, eventlog.Position{}))
		o.Inject(t, foreign, true)
		o.Inject(t, foreign, true)
		tail, err := o.Log.Head(context.Background(), a)
		if err != nil || tail.Seq <= first.Seq {
			t.Fatalf("tail %+v, %v; want a sequence after %d", tail, err, first.Seq)
		}
		if tail.Seq = first.Seq; tail != first {
			t.Fatalf("tail %+v, want %+v but for the sequence", tail, first)
		}
		second := appended(t, o.Log, Entry(t, a, first)) // as a reader knows it
		third := appended(t, o.Log, Entry(t, a, second))
		wantFrames(t, o.Log, a, first.Frame, second.Frame, third.Frame)
		wantTail(t, o.Log, a, third)
	},
	"an agent that only foreign messages know is new": func(t *testing.T, o Opened) {
		needInject(t, o)
		a := Agent("ada")
		o.Inject(t, eventlog.Entry{Agent: a, Bytes: []byte("who am I")}, true)
		tail, err := o.Log.Head(context.Background(), a)
		if err != nil || tail != (eventlog.Position{Seq: tail.Seq}) || tail.Seq == 0 {
			t.Fatalf("tail %+v, %v", tail, err)
		}
		wantFrames(t, o.Log, a)
		wantFrames(t, o.Log, a, appended(t, o.Log, Entry(t, a, tail)).Frame)
	},
}

func needInject(t *testing.T, o Opened) {
	t.Helper()
	if o.Inject == nil {
		t.Skip("this log cannot inject messages")
	}
}

// wantDamage stores two good frames, then a spoilt one and a neighbour's. It
// must be refused with its place, wrapping cause, and nothing else suffer.
func wantDamage(cause error, spoil func(*testing.T, eventlog.Entry) eventlog.Entry) func(*testing.T, Opened) {
	return func(t *testing.T, o Opened) {
		needInject(t, o)
		agents := Neighbours(2)
		a := agents[0]
		tails := grow(t, o.Log, a, eventlog.Position{Epoch: 3}, 2)
		spoilt := spoil(t, Entry(t, a, tails[1]))
		o.Inject(t, spoilt, false)
		neighbour := grow(t, o.Log, agents[1], eventlog.Position{}, 2)

		all, err := collect(o.Log, a, 1)
		var damaged *eventlog.DamageError
		if !errors.As(err, &damaged) {
			t.Fatalf("read %d frames, %v; want a DamageError", len(all), err)
		}
		if len(all) != 2 || damaged.Agent != a || damaged.Event != 3 || damaged.Seq <= tails[1].Seq {
			t.Errorf("read %d frames, then %v; want event 3 of %s after sequence %d", len(all), damaged, a, tails[1].Seq)
		}
		if cause != nil && !errors.Is(err, cause) {
			t.Errorf("%v does not wrap %v", err, cause)
		}
		if _, err := collect(o.Log, a, 3); !errors.As(err, &damaged) {
			t.Errorf("reading from the damaged event: %v", err)
		}
		var conflict *eventlog.ConflictError
		if _, err := o.Log.Append(context.Background(), Entry(t, a, tails[1])); !errors.As(err, &conflict) {
			t.Errorf("append after damage: %v, want a ConflictError", err)
		}
		wantFrames(t, o.Log, agents[1], neighbour[0].Frame, neighbour[1].Frame)
	}
}

// newer returns the entry as a later version might write it: with format 2.
func newer(e eventlog.Entry) eventlog.Entry {
	b := bytes.Replace(e.Bytes, []byte{0xa1, 'f', messages.FrameFormat}, []byte{0xa1, 'f', messages.FrameFormat + 1}, 1)
	cut := len(b) - 9
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Checksum([]byte(e.Agent.Full()), table), table, b[:cut])
	binary.BigEndian.PutUint32(b[len(b)-4:], sum)
	e.Bytes = b
	return e
}
