package messages

import (
	"bytes"
	"encoding/json"
)

// PromptKey is the one key of ours in the agent protocol's envelope. Its object holds the fields
// of an input beside the content. All other keys belong to the protocol or to someone else.
const PromptKey = "reprise"

// The types of the chunks in the reply to a prompt. Those of ours begin with PromptKey; clients of
// the protocol ignore them.
const (
	ChunkStatus    = "status"            // StatusAck
	ChunkResponse  = "response"          // a piece of the answer, and nothing but that
	ChunkQuery     = "query"             // a question to the caller
	ChunkEvents    = "reprise.events"    // the events of one frame, as the view events has them
	ChunkWaiting   = "reprise.waiting"   // the prompt is not accepted yet
	ChunkCut       = "reprise.cut"       // a Cut
	ChunkNotice    = "reprise.notice"    // a text for a person
	ChunkReasoning = "reprise.reasoning" // a piece of the model's reasoning
	ChunkChild     = "reprise.child"     // a piece of the answer of an agent below
)

// StatusAck is the acknowledgement of a prompt, and then a keep-alive.
const StatusAck = "ack"

// Cut reports that the text that was streamed of a model call is void. What follows is text from its
// beginning, of this call or of the next one, or the end of the stream.
type Cut struct {
	Call   CallID    `json:"call"`
	Reason CutReason `json:"reason"`
}

// CutReason is why a text is void.
type CutReason string

// The reasons.
const (
	CutFailed   CutReason = "failed"   // the model call failed, and is not repeated
	CutRepeated CutReason = "repeated" // the model call failed or was interrupted, and is repeated
	CutLost     CutReason = "lost"     // a piece of the text was lost on its way: all of it follows
)

// String returns the reason in words for a person.
func (r CutReason) String() string {
	switch r {
	case CutRepeated:
		return "the answer was cut off; the model is asked again"
	case CutLost:
		return "a part of the answer was lost; all of it follows"
	}
	return "the answer was cut off"
}

// EncodePrompt returns the agent protocol's envelope for an input.
func EncodePrompt(in Input) ([]byte, error) {
	content := in.Content
	in.Content = nil
	return json.Marshal(struct {
		Prompt Content `json:"prompt"`
		Ours   Input   `json:"reprise"`
	}{content, in})
}

// ParsePromptInput reads the body of a prompt: the agent protocol's envelope, or anything that
// ParseInput reads. Fields of the envelope that are not ours are ignored, whatever they hold.
func ParsePromptInput(a AgentID, header Header, body []byte) (Input, error) {
	if mediaType(header) != plainText {
		var err error
		if body, err = unwrapPrompt(body); err != nil {
			return Input{}, err
		}
	}
	return ParseInput(a, header, body)
}

// unwrapPrompt returns the input body of an envelope, and a body that is none as it is.
func unwrapPrompt(body []byte) ([]byte, error) {
	var envelope map[string]json.RawMessage
	if !bytes.HasPrefix(body, []byte{'{'}) || !bytes.Contains(body, []byte(`"prompt"`)) || json.Unmarshal(body, &envelope) != nil || envelope["prompt"] == nil {
		return body, nil
	}
	var attachments []json.RawMessage
	if raw := envelope["attachments"]; raw != nil && (json.Unmarshal(raw, &attachments) != nil || len(attachments) > 0) {
		return nil, Refuse(BadInput, "attachments are not accepted (attachments_ok is false): send text")
	}
	input := make(map[string]json.RawMessage)
	if ours := envelope[PromptKey]; ours != nil {
		if err := json.Unmarshal(ours, &input); err != nil || input == nil {
			return nil, Refuse(BadInput, "the field %q of the prompt is no object: give it the fields of an input, such as {\"id\":\"…\"}", PromptKey)
		}
	}
	input["content"] = envelope["prompt"]
	return json.Marshal(input)
}
