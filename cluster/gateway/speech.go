package gateway

import (
	"hash/maphash"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
	"github.com/reprise-dev/reprise/projections"
)

// text streams what an event of the turn holds of its answer.
func (s *streaming) text(f fact) {
	switch text := projections.StreamedBy(f.ev); text.Kind {
	case projections.StreamBegins:
		s.asked = messages.CallOf(f.ev)
	case projections.StreamCut, projections.StreamRepeated:
		s.cut(text.Kind)
	case projections.StreamEnds:
		s.said = text.Answer
		if f.n > s.after {
			s.rest(messages.CallOf(f.ev), text.Text)
			if s.brief {
				s.to.seen(f.n)
			}
		}
	case projections.StreamReplaced:
		s.said = text.Answer
		s.say(f.n, text.Answer)
	case projections.StreamAnswered:
		if s.said == nil || !s.said.Same(text.Answer) { // such as the result of a tool that ends the turn
			s.say(f.n, text.Answer)
		}
	}
}

// shownText is a text that was streamed in pieces. Only its size and a hash are kept. The
// zero value is empty.
type shownText struct {
	hash maphash.Hash
	size int
}

func (t *shownText) add(piece string) {
	_, _ = t.hash.WriteString(piece) // never fails
	t.size += len(piece)
}

// speak streams a text, in several messages if it is long, and says whether it all went
// out.
func (s *streaming) speak(kind, text string) (sent bool) {
	most := min(messageSize, int(s.g.Conn.MaxPayload())/8) // escaped it may take six times as much
	for len(text) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		if !s.to.say(chunk{kind, text[:end]}) {
			return false
		}
		text = text[end:]
	}
	return s.to.say(chunk{kind, text})
}

// say streams a text that no model has said, unless the caller knows of the
// event.
func (s *streaming) say(n messages.EventNumber, a *projections.Output) {
	if n <= s.after || a.Blob == nil && a.Text == "" {
		return
	}
	s.tell()
	if a.Blob == nil {
		s.speak(messages.ChunkResponse, a.Text)
		return
	}
	s.blob(*a.Blob, func(piece string) bool { return s.speak(messages.ChunkResponse, piece) })
}

// blob gives each the text of a blob in pieces, until it returns false; then more is false.
// The caller is told of one that is lost or damaged. Any other error ends the stream: the
// caller can ask again.
func (s *streaming) blob(b messages.Blob, each func(piece string) bool) (more bool) {
	more = true
	left := b.Size
	err := s.g.pour(s.agent, b, func(piece []byte) bool {
		left -= int64(len(piece))
		more = each(string(piece))
		return more
	})
	if err == nil {
		return more
	}
	why := messages.AsError(err)
	if why.Code != messages.NotFound && why.Code != messages.Damaged {
		s.err = err
		return false
	}
	s.lost += left
	s.tell()
	return s.to.say(chunk{messages.ChunkNotice, "A part of the answer cannot be shown: " + why.Message})
}

// delta streams a piece of the answer. The watch goes on also if the connection does
// not take it: at its end the answer is compared with what was shown.
func (s *streaming) delta(d actors.Delta) (more bool) {
	switch {
	case d.Child != "":
		if d.Turn == s.turn {
			s.to.say(chunk{messages.ChunkChild, d})
		}
	case s.turn == "" || d.Turn != s.turn || d.Call != s.asked || d.Call == s.partial:
	case d.Kind == "text":
		if d.Call != s.call {
			s.call = d.Call
			s.shown = shownText{}
		}
		if s.speak(messages.ChunkResponse, d.Text) {
			s.shown.add(d.Text)
		}
	default:
		s.speak(messages.PromptKey+"."+d.Kind, d.Text)
	}
	return true
}

// pour gives each the text of a model's answer in pieces, until it returns false; then more
// is false. Those that are kept as blobs are read meanwhile.
func (s *streaming) pour(parts []messages.Content, each func(piece string) bool) (more bool) {
	for _, content := range parts {
		between := ""
		for _, p := range content {
			if p.Type != "text" && len(content) > 1 {
				continue
			}
			if text := between + p.Text; text != "" && !each(text) {
				return false
			}
			between = "\n"
			if p.Type == "text" && p.Blob != nil && !s.blob(*p.Blob, each) {
				return false
			}
		}
	}
	return true
}

// rest streams what a call's answer holds beyond what was streamed of it: all
// of it, if the model does not stream.
func (s *streaming) rest(call messages.CallID, parts []messages.Content) {
	shown := s.shown
	if s.call != call {
		shown = shownText{}
	}
	s.shown, s.call = shownText{}, ""
	speak := func(piece string) bool {
		s.tell()
		return s.speak(messages.ChunkResponse, piece)
	}
	var again shownText
	again.hash.SetSeed(shown.hash.Seed())
	same := shown.size == 0
	read := int64(0)
	s.lost = 0
	s.pour(parts, func(piece string) bool {
		read += int64(len(piece))
		if !same {
			n := min(len(piece), shown.size-again.size)
			if again.add(piece[:n]); again.size < shown.size {
				return true
			}
			if again.hash.Sum64() != shown.hash.Sum64() {
				return false
			}
			same, piece = true, piece[n:]
		}
		return piece == "" || speak(piece)
	})
	if all := s.lost > 0 && int64(shown.size) >= read+s.lost; !same && s.err == nil && !all { // pieces were dropped: the caller did not keep up
		s.tell()
		if s.to.say(chunk{messages.ChunkCut, messages.Cut{Call: call, Reason: messages.CutLost}}) {
			s.pour(parts, speak)
		}
	}
}

// cut reports to the caller that the text so far is void.
func (s *streaming) cut(kind projections.StreamedKind) {
	if s.shown.size == 0 {
		return
	}
	reason := messages.CutFailed
	if kind == projections.StreamRepeated {
		reason = messages.CutRepeated
	}
	s.tell()
	s.to.say(chunk{messages.ChunkCut, messages.Cut{Call: s.call, Reason: reason}})
	s.shown, s.call = shownText{}, ""
}
