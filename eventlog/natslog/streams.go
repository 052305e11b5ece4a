package natslog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// metadataStandIn is the metadata of an empty stream that stands in the place of a damaged one.
const metadataStandIn = "reprise-stands-in"

// standIns marks the streams that are to stand in the place of damaged ones.
func standIns(all []jetstream.StreamConfig, names []string) []jetstream.StreamConfig {
	for i := range all {
		if slices.Contains(names, all[i].Name) {
			all[i].Metadata = map[string]string{metadataStandIn: "a damaged stream that is set aside"}
		}
	}
	return all
}

// ensure creates the streams that are missing and checks those that exist.
// Several nodes may do so at once. One error lists all that is wrong.
func ensure(ctx context.Context, js jetstream.JetStream, want []jetstream.StreamConfig) error {
	errs := make([]error, len(want))
	var wg sync.WaitGroup
	for i, w := range want {
		wg.Go(func() { errs[i] = ensureOne(ctx, js, w) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func ensureOne(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	have, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, want)
		if err == nil {
			return nil
		}
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return fmt.Errorf("create stream %s for %s: %w", want.Name, strings.Join(want.Subjects, " "), err)
		}
		have, err = js.Stream(ctx, want.Name) // another node was first
	}
	if err != nil {
		return fmt.Errorf("look up stream %s: %w", want.Name, err)
	}
	cfg := have.CachedInfo().Config
	if isWide(want, cfg) {
		cfg.Subjects = want.Subjects // doctor advises to set them, and nothing depends on it
	}
	if found := dangers(want, cfg); len(found) > 0 {
		return fmt.Errorf("stream %s cannot be trusted: %s", want.Name, strings.Join(found, "; "))
	}
	return nil
}

// dangers lists the settings of an existing stream that could lose or change
// what is stored. Replicas, description, compression and the like are the
// administrator's own business. A cache is a stream that discards what is old: it
// need only take what comes.
func dangers(want, have jetstream.StreamConfig) (found []string) {
	bad := func(is bool, setting string, value any, advice string) {
		if is {
			found = append(found, fmt.Sprintf("%s is %v, %s", setting, value, advice))
		}
	}
	bad(have.Mirror != nil, "mirror", "set", "use the origin or remove it")
	bad(len(have.Sources) > 0, "sources", "set", "remove them: only reprise may write here")
	bad(have.Sealed, "sealed", true, "nothing can be stored: restore it from a backup as an unsealed stream")
	cache := want.Discard == jetstream.DiscardOld
	bad(!cache && have.Storage != want.Storage, "storage", have.Storage, "it must be file: recreate the stream")
	bad(have.Retention != want.Retention, "retention", have.Retention, fmt.Sprintf("it must be %v: recreate the stream", want.Retention))
	bad(!sameSet(have.Subjects, want.Subjects), "subjects", have.Subjects, fmt.Sprintf("set them to %v", want.Subjects))
	bad(!sameTransform(have.SubjectTransform, want.SubjectTransform), "subject_transform", show(have.SubjectTransform), "set it to "+show(want.SubjectTransform))
	bad(cache && have.Discard != want.Discard, "discard", have.Discard, "set it to old: nothing could be replaced")
	bad(!cache && have.MaxAge > 0 && (want.MaxAge == 0 || have.MaxAge < want.MaxAge), "max_age", have.MaxAge, fmt.Sprintf("set it to %v", want.MaxAge))
	bad(have.NoAck, "no_ack", true, "set it to false: nothing would be known to be stored")
	bad(!cache && have.PersistMode == jetstream.AsyncPersistMode, "persist_mode", "async", "set it to default: acknowledged messages could be lost")
	bad(have.MaxMsgSize > 0 && have.MaxMsgSize < minMessage, "max_msg_size", have.MaxMsgSize, fmt.Sprintf("set it to -1, or to %d at least", minMessage))
	bad(have.MaxConsumers > 0, "max_consumers", have.MaxConsumers, "set it to -1: each reader needs one")
	bad(have.Duplicates > want.Duplicates && want.Retention == jetstream.WorkQueuePolicy, "duplicate_window", have.Duplicates,
		fmt.Sprintf("set it to %v: the same message id to two agents would be dropped", want.Duplicates))
	bad(have.AllowDirect && want.Retention == jetstream.WorkQueuePolicy, "allow_direct", true, "set it to false: a copy that is behind would say that an input is gone")
	return append(append(found, powers(want, have)...), limits(want, have)...)
}

// powers lists what a stream lets a publisher do by a header, beyond
// storing a message: remove others, write to other subjects, or have it forgotten.
func powers(want, have jetstream.StreamConfig) (found []string) {
	for _, p := range [...]struct {
		setting string
		on      bool
		can     string
	}{
		{"allow_rollup_hdrs", have.AllowRollup && !want.AllowRollup, "remove what others stored"},
		{"allow_msg_ttl", have.AllowMsgTTL, "have a message removed before it is read"},
		{"allow_msg_schedules", have.AllowMsgSchedules, "write to other subjects of the stream, again and again"},
		{"allow_msg_counter", have.AllowMsgCounter, "change what is stored"},
	} {
		if p.on {
			found = append(found, fmt.Sprintf("%s is true, so that a publisher can %s by a header: set it to false (most of these need the stream to be made again)", p.setting, p.can))
		}
	}
	if have.RePublish != nil {
		found = append(found, fmt.Sprintf("republish is set, and shows what is stored to all who may read %q: remove it", have.RePublish.Destination))
	}
	return found
}

// limits lists what makes a stream forget once it is full. A limit with
// discard new only refuses, and the sender is notified; a log must not even
// do that, for it is kept forever and its limits would stop all agents.
func limits(want, have jetstream.StreamConfig) (found []string) {
	queue := want.Retention == jetstream.WorkQueuePolicy
	forgets := have.Discard == jetstream.DiscardOld
	if want.MaxAge > 0 || want.Discard == jetstream.DiscardOld { // dead letters and snapshots may be dropped
		return nil
	}
	for _, l := range [...]struct {
		setting string
		have    int64
		want    int64
		refuses bool
	}{
		{"max_msgs", have.MaxMsgs, want.MaxMsgs, !forgets},
		{"max_bytes", have.MaxBytes, want.MaxBytes, !forgets},
		{"max_msgs_per_subject", have.MaxMsgsPerSubject, want.MaxMsgsPerSubject, !forgets && have.DiscardNewPerSubject},
	} {
		unlimited := l.have <= 0
		if unlimited || l.have == l.want && l.refuses || queue && l.refuses {
			continue
		}
		advice := fmt.Sprintf("set it to %d: history would be dropped or refused", l.want)
		if queue {
			advice = "set discard to new (and discard_new_per_subject), or the limit to -1: inputs would be dropped without a word"
		}
		found = append(found, fmt.Sprintf("%s is %d with discard %v, %s", l.setting, l.have, have.Discard, advice))
	}
	return found
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func sameTransform(a, b *jetstream.SubjectTransformConfig) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func show(t *jetstream.SubjectTransformConfig) string {
	if t == nil {
		return "none"
	}
	return fmt.Sprintf("%q to %q", t.Source, t.Destination)
}

// remake makes a stream of blobs or snapshots again that was removed while
// the log was open, and reports whether it did. Streams of the log itself are made by
// Open alone: their sequences are fences.
func (l *Log) remake(ctx context.Context, name string) bool {
	js := l.conns[0].js
	if _, err := js.Stream(ctx, name); !errors.Is(err, jetstream.ErrStreamNotFound) {
		return false
	}
	all := streams(l.subjects, l.replicas)
	i := slices.IndexFunc(all, func(s jetstream.StreamConfig) bool { return s.Name == name })
	if err := ensureOne(ctx, js, all[i]); err != nil {
		l.log.Warn("a stream was removed and cannot be made again", "stream", name, "error", err)
		return false
	}
	l.log.Warn("a stream was removed while it was in use; it is made again, but what it held is gone: `reprise doctor` names what is missing, a backup may have it", "stream", name)
	return true
}

// replicasOf is how many copies new streams get: asked, or if that is 0 as many as
// those have that are there.
func replicasOf(ctx context.Context, js jetstream.JetStream, n Names, asked int) (int, error) {
	if asked != 0 {
		return asked, nil
	}
	s, err := js.Stream(ctx, n.Definitions())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look up stream %s: %w", n.Definitions(), err)
	}
	return max(1, s.CachedInfo().Config.Replicas), nil
}

// ownMetadata is a stream's metadata without what the server adds.
func ownMetadata(all map[string]string) map[string]string {
	own := make(map[string]string, len(all)+1)
	for name, value := range all {
		if !strings.HasPrefix(name, "_nats.") {
			own[name] = value
		}
	}
	return own
}
