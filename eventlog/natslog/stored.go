package natslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// Known returns the last sequence that each stream of the log is known to have stored,
// by the messages of the stream of marks: the newest of each subject. What cannot be read
// says nothing.
func Known(s messages.Subjects, newest map[string][]byte) map[string]uint64 {
	known := make(map[string]uint64)
	for stream, e := range onRecord(s, newest) {
		known[stream] = e.known()
	}
	return known
}

// Removed returns how many of the messages up to its last sequence each stream of the log
// may lack without having lost one, by the same messages: purges removed them. A stream
// that is not in the result has no record.
func Removed(s messages.Subjects, newest map[string][]byte) map[string]uint64 {
	removed := make(map[string]uint64)
	for stream, e := range onRecord(s, newest) {
		_, removed[stream] = e.removed()
	}
	return removed
}

// Taken returns what was taken out of the streams of the log, by the messages of the stream of
// marks.
func Taken(s messages.Subjects, newest map[string][]byte) Recorded {
	taken := make(Recorded)
	for stream, e := range onRecord(s, newest) {
		taken[stream] = e.base.Quarantined
	}
	return taken
}

// onRecord returns the record of each stream of the log that has one.
func onRecord(s messages.Subjects, newest map[string][]byte) map[string]evidence {
	all := make(map[string]evidence)
	for shard := range LogStreams {
		var b base
		if json.Unmarshal(newest[markSubject(s, baseKey(shard))], &b) != nil {
			continue
		}
		e := evidence{base: &b}
		first, end := partitionsOf(shard)
		for p := first; p < end; p++ {
			var m mark
			if json.Unmarshal(newest[markSubject(s, markKey(messages.Partition(p)))], &m) == nil && m.Base == b.ID {
				e.marks = append(e.marks, m)
			}
		}
		all[NamesOf(s).log(shard)] = e
	}
	return all
}

// EndsStored reports whether a message of the log as a server stores it is a tombstone, by
// its headers.
func EndsStored(header []byte) bool {
	if !bytes.Contains(header, []byte(messages.AgentDeleted{}.EventType())) {
		return false
	}
	h, err := nats.DecodeHeadersMsg(header)
	return err == nil && IsTombstone(h)
}

// CheckStored returns what is wrong with a message of the log as a server stores it, by
// its own checksum. A message that is no frame, or that a later version wrote, is no fault
// of the store.
func CheckStored(s messages.Subjects, subject string, header, body []byte) error {
	a, err := s.ParseLog(subject)
	if err != nil || !strings.Contains(string(header), headerFrame) {
		return nil
	}
	h, err := nats.DecodeHeadersMsg(header)
	if err == nil {
		_, err = decode(a, &stored{subject: subject, header: h, data: body})
	}
	if errors.Is(err, messages.ErrNewer) { // which a later version reads
		return nil
	}
	if err != nil {
		return fmt.Errorf("the frame: %w", err)
	}
	return nil
}
