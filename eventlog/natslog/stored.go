package natslog

import (
	"encoding/json"
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
		known[NamesOf(s).log(shard)] = e.known()
	}
	return known
}

// CheckStored returns what is wrong with a message of the log as a server stores it, by
// its own checksum. A message that is no frame is no fault of the store.
func CheckStored(s messages.Subjects, subject string, header, body []byte) error {
	a, err := s.ParseLog(subject)
	if err != nil || !strings.Contains(string(header), headerFrame) {
		return nil
	}
	h, err := nats.DecodeHeadersMsg(header)
	if err == nil {
		_, err = decode(a, &stored{subject: subject, header: h, data: body})
	}
	if err != nil {
		return fmt.Errorf("the frame: %w", err)
	}
	return nil
}
