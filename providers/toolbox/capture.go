package toolbox

import "bytes"

// capture keeps what is written up to a limit, and while there is room for it. The rest
// is dropped, and stop is called once.
type capture struct {
	buf   bytes.Buffer
	limit int
	room  func(n int) error // waits until there is room for n more bytes
	err   error             // why something was dropped
	stop  func(error)
}

// Write never fails, so that the writer is not stopped by a broken pipe
// before it is killed.
func (c *capture) Write(b []byte) (int, error) {
	if c.err != nil {
		return len(b), nil
	}
	keep := min(len(b), c.limit-c.buf.Len())
	if c.err = c.room(keep); c.err == nil {
		c.buf.Write(b[:keep])
		if keep < len(b) {
			c.err = errOutput
		}
	}
	if c.err != nil {
		c.stop(c.err)
	}
	return len(b), nil
}
