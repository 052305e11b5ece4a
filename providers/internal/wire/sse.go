package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// events reads the data of server-sent events, one line each, as model servers write them
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). Comments and other
// fields are skipped. A line without a field, in which some servers report an error, is kept
// as stray.
type events struct {
	r *bufio.Reader
	// claim covers the bytes of a line that is longer than the buffer.
	claim func(line int) error
	line  []byte
	read  int
	begun bool // a line had data
	stray []byte
	scrub Scrubber
}

const (
	lineBuffer = 4 << 10
	maxStray   = 2 << 10 // bytes
)

var done = []byte("[DONE]")

// next returns the data of the next event, which is valid until the following call. At the
// end of the stream its error is io.EOF, and ended reports whether the server marked it.
func (e *events) next() (data []byte, ended bool, err error) {
	for {
		line, err := e.readLine()
		line = bytes.TrimPrefix(line, byteOrderMark)
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data, e.begun = bytes.TrimSpace(data), true
			if bytes.Equal(data, done) {
				return nil, true, io.EOF
			}
			if len(data) > 0 {
				return data, false, nil // an error comes again
			}
		} else if e.isStray(line) && len(e.stray) < maxStray {
			e.stray = append(e.stray, line[:min(len(line), maxStray-len(e.stray))]...)
		}
		if err != nil {
			return nil, false, err
		}
	}
}

func (e *events) isStray(line []byte) bool {
	field, _, _ := bytes.Cut(line, []byte(":"))
	switch string(field) {
	case "", "event", "id", "retry":
		return false
	}
	return true
}

// readLine returns the next line without its end. The last one may have none.
func (e *events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		piece, err := e.r.ReadSlice('\n')
		if e.read += len(piece); e.read > maxAnswer {
			return nil, errTooLong
		}
		if err == nil && len(e.line) == 0 {
			return bytes.TrimSpace(piece), nil
		}
		if claimErr := e.claim(len(e.line) + len(piece)); claimErr != nil {
			return nil, claimErr
		}
		e.line = append(e.line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSpace(e.line), err
		}
	}
}

var byteOrderMark = []byte("\ufeff")

// cutOff returns the error of a stream that ended before the answer did: the one that a stray
// line speaks of, if there is one, and the text itself where nothing else came.
func (e *events) cutOff() error {
	_, stray, _ := bytes.Cut(e.stray, []byte("{"))
	if len(stray) > 0 {
		if c, ok := ReadComplaint([]byte(e.scrub.Text("{" + string(stray)))); ok {
			return c.InStream()
		}
	}
	if !e.begun && len(e.stray) > 0 {
		return BadAnswer("the server answered with a text that is no answer of a model, check the base URL: " + shown(e.scrub.Text(string(e.stray))))
	}
	return errCutOff
}
