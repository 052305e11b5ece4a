package gateway

import (
	"hash/maphash"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// answerText is what was streamed of the text of a turn. The zero value: nothing.
type answerText struct {
	// call is the model call that is under way. Pieces of other calls are left out, and so are those
	// of joined, which was under way when the caller came: its text is sent as a whole. From an
	// owner on another node a piece may come after its call's text was read from the log.
	call, joined messages.CallID
	sent         sentText
	// answer is what the turn answers if nothing follows, by its newest text, of its model or of
	// a hook. Nil: more follows.
	answer *projections.Output
}

// sentText is what was streamed of a call's text in pieces. Only its size and a hash are kept. The
// zero value is empty.
type sentText struct {
	call messages.CallID
	hash maphash.Hash
	size int
}

func (t *sentText) add(piece string) {
	_, _ = t.hash.WriteString(piece) // never fails
	t.size += len(piece)
}

// delta streams a piece as the model writes it. One that the connection does not take is missed
// when the text is complete.
func (s *stream) delta(d actors.Delta) (more bool) {
	switch {
	case d.Child != "":
		if d.Turn == s.turn {
			s.reply.chunk(messages.ChunkChild, d)
		}
	case s.turn == "" || d.Turn != s.turn || d.Call != s.text.call || d.Call == s.text.joined:
	case d.Kind == "text":
		if d.Call != s.text.sent.call {
			s.text.sent = sentText{call: d.Call}
		}
		if s.pieces(messages.ChunkResponse, d.Text) {
			s.text.sent.add(d.Text)
		}
	default:
		s.pieces(messages.PromptKey+"."+d.Kind, d.Text)
	}
	return true
}

// streamed streams what an event of the turn holds of its answer.
func (s *stream) streamed(f fact) {
	switch text := projections.StreamedBy(f.ev); text.Kind {
	case projections.StreamBegins:
		s.text.call = messages.CallOf(f.ev)
	case projections.StreamCut:
		s.text.call = ""
		s.cut(messages.CutFailed)
	case projections.StreamRepeated:
		s.text.call = ""
		s.cut(messages.CutRepeated)
	case projections.StreamEnds:
		s.text.answer, s.text.call = text.Answer, ""
		if f.n > s.after {
			s.complete(messages.CallOf(f.ev), text.Text)
			if s.brief {
				s.reply.complete(f.n)
			}
		}
	case projections.StreamReplaced:
		s.text.answer = text.Answer
		s.whole(f.n, text.Answer)
	case projections.StreamAnswered:
		if s.text.answer == nil || !s.text.answer.Same(text.Answer) { // such as the result of a tool that ends the turn
			s.whole(f.n, text.Answer)
		}
	}
}

// cut reports to the caller that the text so far is void.
func (s *stream) cut(reason messages.CutReason) {
	if s.text.sent.size > 0 {
		s.flush()
		s.reply.chunk(messages.ChunkCut, messages.Cut{Call: s.text.sent.call, Reason: reason})
		s.text.sent = sentText{}
	}
}

// complete streams what a call's text holds beyond what was streamed of it: all of it, if the model does not
// stream, or if pieces were dropped because the caller did not keep up.
func (s *stream) complete(call messages.CallID, parts []messages.Content) {
	sent := s.text.sent
	if sent.call != call {
		sent = sentText{}
	}
	s.text.sent = sentText{}
	send := func(piece string) bool {
		s.flush()
		return s.pieces(messages.ChunkResponse, piece)
	}
	var again sentText
	again.hash.SetSeed(sent.hash.Seed())
	same := sent.size == 0
	read := int64(0)
	lost := s.each(parts, func(piece string) bool {
		read += int64(len(piece))
		if !same {
			n := min(len(piece), sent.size-again.size)
			if again.add(piece[:n]); again.size < sent.size {
				return true
			}
			if again.hash.Sum64() != sent.hash.Sum64() {
				return false
			}
			same, piece = true, piece[n:]
		}
		return piece == "" || send(piece)
	})
	if all := lost > 0 && int64(sent.size) >= read+lost; same || s.err != nil || all {
		return
	}
	s.flush()
	if s.reply.chunk(messages.ChunkCut, messages.Cut{Call: call, Reason: messages.CutLost}) {
		s.each(parts, send)
	}
}

// whole streams an answer that no model call has streamed, unless the caller has the event.
func (s *stream) whole(n messages.EventNumber, a *projections.Output) {
	if n <= s.after || a.Blob == nil && a.Text == "" {
		return
	}
	s.flush()
	if a.Blob == nil {
		s.pieces(messages.ChunkResponse, a.Text)
		return
	}
	s.blob(*a.Blob, func(piece string) bool { return s.pieces(messages.ChunkResponse, piece) })
}

// each passes the text of a model's answer to do in pieces, until that returns false. Parts
// that are kept as blobs are read meanwhile. It returns how many bytes of them are lost.
func (s *stream) each(parts []messages.Content, do func(piece string) (more bool)) (lost int64) {
	for _, content := range parts {
		between := ""
		for _, p := range content {
			if p.Type != "text" && len(content) > 1 {
				continue
			}
			if text := between + p.Text; text != "" && !do(text) {
				return lost
			}
			between = "\n"
			if p.Type == "text" && p.Blob != nil {
				gone, more := s.blob(*p.Blob, do)
				if lost += gone; !more {
					return lost
				}
			}
		}
	}
	return lost
}

// blob passes the text of a blob to do in pieces, until that returns false. If it is
// lost or damaged, the caller gets a notice; lost is how many bytes are missing. Any other error ends
// the stream: the caller can ask again.
func (s *stream) blob(b messages.Blob, do func(piece string) (more bool)) (lost int64, more bool) {
	left, more := b.Size, true
	err := s.g.pour(s.agent, b, func(piece []byte) bool {
		left -= int64(len(piece))
		more = do(string(piece))
		return more
	})
	if err == nil {
		return 0, more
	}
	why := messages.AsError(err)
	if why.Code != messages.NotFound && why.Code != messages.Damaged {
		s.err = err
		return 0, false
	}
	s.flush()
	return left, s.reply.chunk(messages.ChunkNotice, "A part of the answer cannot be shown: "+why.Message)
}

// pieces sends a text, in several chunks if it is long, and reports whether all went out.
func (s *stream) pieces(kind, text string) (sent bool) {
	most := min(messageSize, int(s.g.Conn.MaxPayload())/8) // escaped it may take six times as much
	for len(text) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		if !s.reply.chunk(kind, text[:end]) {
			return false
		}
		text = text[end:]
	}
	return s.reply.chunk(kind, text)
}
