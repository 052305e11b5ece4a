package wire

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/providers"
	"github.com/reprise-dev/reprise/providers/profile"
)

// CallIDs holds the ids of the calls of a history.
type CallIDs map[messages.CallID]bool

// NewCallIDs returns those of the history of a request.
func NewCallIDs(r providers.Request) CallIDs {
	s := make(CallIDs)
	for i := range r.Items {
		if r.Items[i].Type == messages.ItemCall {
			s[r.Items[i].CallID] = true
		}
	}
	return s
}

// Keep adds an id and returns it; a new one if it is empty or there already.
func (s CallIDs) Keep(id string) messages.CallID {
	call := messages.CallID(id)
	if id == "" || s[call] {
		call = messages.CallID("call_" + rand.Text())
	}
	s[call] = true
	return call
}

// The lengths of ids by the rules profile.Nine and profile.Word.
const (
	nine = 9
	word = 40
)

// SentID returns the id of a call as the server accepts it: the same for a call and its
// result, and in every request. Two ids of one history become the same with a chance of
// about one in 10^13; only results of one step are found by them.
func SentID(id messages.CallID, form profile.Value) string {
	length, sent := len(id), string(id)
	strange := strings.ContainsFunc(sent, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (form == profile.Nine || c != '-' && c != '_')
	})
	switch {
	case form == profile.Nine && (strange || length != nine):
		return digest(sent)[:nine]
	case form == profile.Word && (strange || length > word):
		return digest(sent)[:word]
	}
	return sent
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base32.StdEncoding.EncodeToString(sum[:])
}
