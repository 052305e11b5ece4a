package traces

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/reprise-dev/reprise/projections"
)

// JSON returns spans as one document of OTLP in JSON, without line breaks, as collectors read it
// from a request or from a line of a file.
func (r Resource) JSON(spans []projections.Span) ([]byte, error) {
	b, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(r.Data(spans))
	if err != nil {
		return nil, err
	}
	var document any
	if err := json.Unmarshal(b, &document); err != nil {
		return nil, err
	}
	idsInHex(document)
	return json.Marshal(document)
}

// idsInHex writes the ids in a document in hex, as OTLP wants them, and not in the base64 of
// protobuf's JSON.
func idsInHex(document any) {
	switch d := document.(type) {
	case []any:
		for _, of := range d {
			idsInHex(of)
		}
	case map[string]any:
		for name, of := range d {
			switch text, isText := of.(string); {
			case isText && (name == "traceId" || name == "spanId" || name == "parentSpanId"):
				if b, err := base64.StdEncoding.DecodeString(text); err == nil {
					d[name] = hex.EncodeToString(b)
				}
			default:
				idsInHex(of)
			}
		}
	}
}
