package messages

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
)

// CommandDigest returns a digest that differs for two commands that do different things:
// the first 64 bits of SHA-256, in hex. It covers the policy, the content and the schedule
// of an input, without the times: a retry may have another deadline, and another "in two
// hours". Of other commands it covers all but id and reason, and of a decision not the turn
// and the hash of the arguments. It is empty for commands that only agents send.
func CommandDigest(c Command) string {
	sum := sha256.New()
	field := func(text string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		sum.Write(size[:])
		sum.Write([]byte(text))
	}
	field(c.CommandType())
	switch c := c.(type) {
	case Input:
		field(string(cmp.Or(c.Policy, PolicyQueue)))
		for _, p := range c.Content {
			field(p.Type)
			field(p.Text)
			field(p.ImageURL)
			field(p.Detail)
		}
		if c.Scheduled() {
			field("later")
			field(c.Cron)
			field(c.Zone)
			field(c.Name)
		}
	default:
		e := entryOf(c)
		if e == nil || e.from == FromAgent {
			return ""
		}
		field(string(effectOf(c, e.decides())))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// effectOf returns the fields of a command that determine its effect, as JSON. decision reports
// whether it is a decision about a call. It is empty for a command that JSON cannot represent,
// such as a patch that is no JSON, which is refused.
func effectOf(c Command, decision bool) []byte {
	var fields map[string]json.RawMessage
	b, err := json.Marshal(c)
	if err != nil || json.Unmarshal(b, &fields) != nil {
		return nil
	}
	delete(fields, "id")
	delete(fields, "reason")
	if decision {
		delete(fields, "turn")
		delete(fields, "args_hash")
	}
	b, _ = json.Marshal(fields)
	return b
}
