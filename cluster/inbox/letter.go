package inbox

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/reprise-dev/reprise/messages"
)

// deadLetter stores a message that can never be applied with the reason; only then may
// it be taken out of the queue. The error is ctx's: the next owner sees the message again.
func (b *Inbox) deadLetter(ctx context.Context, msg *message, a messages.AgentID, why *messages.Error) error {
	letter := b.letter(msg, a, why)
	err := persist(ctx, func() error {
		_, err := b.js.PublishMsg(ctx, letter)
		return err
	}, func(err error, _ time.Duration) {
		b.cfg.Logger.Warn("a dead letter cannot be stored; it is tried again", b.about(a), "subject", letter.Subject, "error", err)
	})
	if err != nil {
		return err
	}
	b.cfg.Logger.Warn("an input was refused and kept as a dead letter", b.about(a),
		"subject", letter.Header.Get(messages.HeaderSubject), "code", string(why.Code), "reason", why.Message)
	return nil
}

// foreignHeaders bounds the headers of its own that a letter keeps, in bytes.
// A letter must fit; what goes beyond is left out.
const foreignHeaders = 8 << 10

// letter is the message with the reason. Headers that mean something to the server are left out:
// they could make it refuse the letter forever. So are those by which it speaks to consumers: a
// library would take the letter for the server's own message.
func (b *Inbox) letter(msg *message, a messages.AgentID, why *messages.Error) *nats.Msg {
	letter := nats.NewMsg(b.cfg.Subjects.DeadLetter(a))
	if a.Validate() != nil {
		letter.Subject = b.cfg.Subjects.DeadLetter(messages.AgentID{Tenant: "_", Kind: "_", Key: "_"})
	}
	h := msg.header
	size := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if strings.HasPrefix(strings.ToLower(name), "nats-") || name == "Status" || name == "Description" {
			continue
		}
		for _, value := range h[name] {
			if size += len(name) + len(value) + len(": \r\n"); size <= foreignHeaders {
				letter.Header.Add(name, value)
			}
		}
	}
	if id := h.Get(messages.HeaderMsgID); id != "" && h.Get(messages.HeaderID) == "" && len(id) <= messages.MaxID {
		letter.Header.Set(messages.HeaderID, id) // it was the input's id, and still is when it is sent again
	}
	letter.Header.Set(messages.HeaderReason, messages.OneLine(why.Message))
	letter.Header.Set(messages.HeaderCode, string(why.Code))
	letter.Header.Set(messages.HeaderSubject, b.publishedTo(msg.subject))
	letter.Header.Set(messages.HeaderMsgID, msg.id)
	letter.Header.Set(messages.HeaderReceived, msg.stored.UTC().Format(time.RFC3339Nano))
	letter.Data = msg.data
	if room := max(0, int(b.cfg.Conn.MaxPayload())-2*foreignHeaders); len(letter.Data) > room {
		letter.Header.Set(messages.HeaderCut, strconv.Itoa(len(letter.Data)))
		letter.Data = letter.Data[:room]
	}
	return letter
}
