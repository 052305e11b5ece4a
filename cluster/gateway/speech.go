package gateway

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reprise-dev/reprise/actors"
	"github.com/reprise-dev/reprise/messages"
)

// text streams what an event of the turn holds of its answer.
func (s *streaming) text(f fact) {
	switch ev := s.whole(f.ev).(type) {
	case messages.ModelRequested:
		s.asked = ev.Call
	case messages.ModelCompleted:
		s.said, s.answer = textOf(ev), !calls(ev)
		if f.n > s.after {
			s.rest(ev.Call)
		}
	case messages.HookDecided:
		if ev.Answer != "" {
			s.said, s.answer = ev.Answer, true
			s.say(f.n, ev.Answer)
		}
	case messages.TurnCompleted:
		if said := s.answer && plain(s.said) == plain(ev.Output); !said && ev.Output != "" { // such as the result of a tool that ends the turn
			s.say(f.n, ev.Output)
		}
	case messages.ModelFailed:
		s.cut(ev.RetryAt != nil)
	case messages.ModelRestarted:
		s.cut(true)
	}
}

// whole is what a model or a turn answers with the texts that it keeps as blobs.
func (s *streaming) whole(ev messages.Event) messages.Event {
	switch ev.(type) {
	case messages.ModelCompleted, messages.TurnCompleted:
	default:
		return ev
	}
	if len(messages.BlobsOf(ev)) == 0 {
		return ev
	}
	whole, err := s.g.whole(s.agent, ev)
	if err != nil {
		s.tell()
		s.to.say(chunk{"reprise.notice", "A part of the answer cannot be shown: " + messages.AsError(err).Message})
		return ev
	}
	return whole
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

// plain is a text without line breaks: parts of an answer are joined by them
// here and not there.
func plain(text string) string { return strings.ReplaceAll(text, "\n", "") }

// say streams a text that no model has said, unless the caller knows of the
// event.
func (s *streaming) say(n messages.EventNumber, text string) {
	if n > s.after {
		s.tell()
		s.speak("response", text)
	}
}

// delta streams a piece of the answer. The watch goes on also if the connection does
// not take it: at its end the answer is compared with what was shown.
func (s *streaming) delta(d actors.Delta) (more bool) {
	switch {
	case d.Child != "":
		if d.Turn == s.turn {
			s.to.say(chunk{"reprise.child", d})
		}
	case s.turn == "" || d.Turn != s.turn || d.Call != s.asked || d.Call == s.joined:
	case d.Kind == "text":
		if d.Call != s.call {
			s.call = d.Call
			s.shown.Reset()
		}
		if s.speak("response", d.Text) {
			s.shown.WriteString(d.Text)
		}
	default:
		s.speak("reprise."+d.Kind, d.Text)
	}
	return true
}

// calls says whether a model's answer asks for tools: then it is not the turn's.
func calls(ev messages.ModelCompleted) bool {
	return slices.ContainsFunc(ev.Items, func(item messages.Item) bool { return item.Type == messages.ItemCall })
}

// textOf is the text of a model's answer.
func textOf(ev messages.ModelCompleted) string {
	var text strings.Builder
	for _, item := range ev.Items {
		if item.Type == messages.ItemMessage || item.Type == messages.ItemRefusal {
			text.WriteString(item.Content.Text())
		}
	}
	return text.String()
}

// rest streams what a call's answer holds beyond what was streamed of it: all
// of it, if the model does not stream.
func (s *streaming) rest(call messages.CallID) {
	shown := ""
	if s.call == call {
		shown = s.shown.String()
	}
	rest, ok := strings.CutPrefix(s.said, shown)
	if !ok { // pieces were dropped: the caller did not keep up
		rest = "\n[a part was lost; the whole answer again]\n" + s.said
	}
	if rest != "" {
		s.tell()
		s.speak("response", rest)
	}
	s.shown.Reset()
	s.call = ""
}

// cut tells the reader that the text so far will not be continued.
func (s *streaming) cut(again bool) {
	if s.shown.Len() > 0 {
		s.tell()
		note := "\n[the answer was cut off]\n"
		if again {
			note = "\n[the answer was cut off; the model is asked again]\n"
		}
		s.to.say(chunk{"response", note})
		s.shown.Reset()
		s.call = ""
	}
}
