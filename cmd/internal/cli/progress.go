package cli

import (
	"fmt"
	"time"

	"github.com/mattn/go-runewidth"
)

// progress is a line on a terminal that is written again and again. Elsewhere
// it says nothing. It is used by one goroutine.
type progress struct {
	app   *app
	on    bool
	shown time.Time // when it was written last
}

// redraw is the least time between two writings.
const redraw = 100 * time.Millisecond

func (a *app) progress() *progress {
	return &progress{app: a, on: isTerminal(a.err) && !a.json() && !dumb()}
}

// show writes the line, unless it was written a moment ago.
func (p *progress) show(format string, args ...any) {
	if now := time.Now(); p.on && now.Sub(p.shown) >= redraw {
		p.shown = now
		_, _ = fmt.Fprintf(p.app.err, "\r\x1b[K"+p.app.dim(p.app.err, "%s"), p.fits(fmt.Sprintf(format, args...), 0))
	}
}

// fits is text that leaves columns of the line for what follows it. The last column
// stays free, for a terminal begins another line behind it.
func (p *progress) fits(text string, behind int) string {
	width, _ := terminalSize(p.app.err)
	return shortened(text, width-1-behind)
}

// shortened is text of at most width columns; below 0: as it is.
func shortened(text string, width int) string {
	if width < 0 {
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// end takes the line away.
func (p *progress) end() {
	if p.on && !p.shown.IsZero() {
		_, _ = fmt.Fprint(p.app.err, "\r\x1b[K")
		p.shown = time.Time{}
	}
}

// size is a number of bytes as people write it.
func size[N int64 | uint64](n N) string {
	f, unit := float64(n), 0
	for ; f >= 1024 && unit < 4; unit++ {
		f /= 1024
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %ciB", f, " KMGT"[unit])
}
