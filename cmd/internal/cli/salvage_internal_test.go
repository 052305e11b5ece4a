package cli

import (
	"testing"

	"github.com/reprise-dev/reprise/eventlog/natslog/backup"
	"github.com/reprise-dev/reprise/messages"
)

// TestCopyIsCounted holds that no backup is made of a copy of which a server finds less than was
// copied, but for what expires.
func TestCopyIsCounted(t *testing.T) {
	for stream, wrong := range map[string]bool{"REPRISE_LOG_7": true, "REPRISE_IN": true, "REPRISE_DLQ": false} {
		for _, there := range []uint64{4, 5} {
			s := &salvaging{copied: map[string]uint64{stream: 5}, manifest: &backup.Manifest{Streams: []backup.Stream{{Name: stream, Messages: there}}}}
			if err := s.compare(messages.DefaultRoot); (err != nil) != (wrong && there < 5) {
				t.Errorf("%s with %d of 5 messages: %v", stream, there, err)
			}
		}
	}
}
