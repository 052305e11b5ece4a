package natslog

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// metadataOrigins is where a restored work queue keeps its [Origins].
const metadataOrigins = "reprise-origins"

// Origins record since when the work queue numbers its messages as it does, which
// is a part of the ids of inputs that came without one. A stream has one, its
// creation, until it is restored from a backup: the messages that the backup
// held keep theirs, so that one that was applied already is still known, and
// those that come later get another, since their numbers may have been used
// after the backup was taken.
type Origins []Origin

// Origin is the time that goes with the messages up to sequence Last, and
// behind those of the origin before it.
type Origin struct {
	At   time.Time // in milliseconds
	Last uint64    // math.MaxUint64: no end
}

// OriginsOf reads the origins of a work queue. An error says that its metadata
// cannot be read: no id may be made of a guess.
func OriginsOf(created time.Time, cfg jetstream.StreamConfig) (Origins, error) {
	text, restored := cfg.Metadata[metadataOrigins]
	if !restored {
		return Origins{{created, math.MaxUint64}}, nil
	}
	var all Origins
	for field := range strings.FieldsSeq(text) {
		ms, seq, _ := strings.Cut(field, ":")
		at, err := strconv.ParseInt(ms, 10, 64)
		last := uint64(math.MaxUint64)
		if err == nil && seq != "" {
			last, err = strconv.ParseUint(seq, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("metadata %s of stream %s is %q: want <milliseconds>:<last sequence> …: set it back to what the restore wrote", metadataOrigins, cfg.Name, text)
		}
		all = append(all, Origin{time.UnixMilli(at).UTC(), last})
	}
	if len(all) == 0 || all[len(all)-1].Last != math.MaxUint64 {
		return nil, fmt.Errorf("metadata %s of stream %s is %q: its last field must have no last sequence", metadataOrigins, cfg.Name, text)
	}
	return all, nil
}

// Of is the origin of the message with a sequence.
func (o Origins) Of(seq uint64) time.Time {
	for _, origin := range o {
		if seq <= origin.Last {
			return origin.At
		}
	}
	return o[len(o)-1].At
}

// Restored are the origins of a queue that is restored at a time from a backup
// whose newest message was last, as stream metadata.
func (o Origins) Restored(last uint64, at time.Time) (name, value string) {
	var b strings.Builder
	for _, origin := range o {
		fmt.Fprintf(&b, "%d:%d ", origin.At.UnixMilli(), min(origin.Last, last))
	}
	return metadataOrigins, b.String() + strconv.FormatInt(at.UnixMilli(), 10)
}
