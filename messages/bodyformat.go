package messages

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/messages/internal/codec"
)

// object returns the body as a JSON object; ok reports whether it is one, in JSON or msgpack.
func object(header Header, body []byte) (raw []byte, ok bool, err error) {
	ct := mediaType(header)
	first := body[0]
	switch {
	case ct == plainText:
		return nil, false, nil
	case ct == "application/json" || strings.HasSuffix(ct, "+json") || ct == "" && first == '{':
		if !utf8.Valid(body) {
			return nil, false, Refuse(BadInput, "the JSON body is no valid UTF-8")
		}
		if err := codec.CheckJSONDepth(body); err != nil {
			return nil, false, Refuse(BadInput, "the JSON body is %v", err)
		}
		return body, true, nil
	case ct == "application/msgpack" || ct == "application/x-msgpack" || ct == "application/vnd.msgpack" ||
		ct == "" && beginsMsgpackMap(body):
		raw, err := codec.FromMsgpack(body)
		if err != nil {
			return nil, false, Refuse(BadInput, "%v", err)
		}
		return raw, true, nil
	case ct == "":
		return nil, false, nil
	}
	return nil, false, Refuse(BadInput, "Content-Type %q: send text/plain, application/json or application/msgpack", ct)
}

// plainText is the media type of a body that is never parsed.
const plainText = "text/plain"

// mediaType returns the Content-Type without its parameters, in lower case. Empty: there is none.
func mediaType(header Header) string {
	ct, _, _ := strings.Cut(header(HeaderContentType), ";")
	return strings.ToLower(strings.TrimSpace(ct))
}

// beginsMsgpackMap reports whether body begins with a msgpack map. Thaana and N'Ko text
// begins with the same bytes as a map of more than 32767 entries, which no body has.
func beginsMsgpackMap(body []byte) bool {
	switch first := body[0]; {
	case first >= 0x80 && first <= 0x8f:
		return true
	case first == 0xde || first == 0xdf:
		return len(body) < 2 || body[1] < 0x80 || body[1] > 0xbf
	}
	return false
}

func unmarshalObject(raw []byte, v any) error {
	err := json.Unmarshal(raw, v)
	if err == nil {
		return nil
	}
	if e := AsError(err); e.Code != Internal {
		return e
	}
	if text := codec.WrongType(err, "address"); text != "" {
		return Refuse(BadInput, "%s", text)
	}
	return Refuse(BadInput, "the JSON body cannot be read: %v (to send text that begins with { set Content-Type: text/plain)", err)
}
