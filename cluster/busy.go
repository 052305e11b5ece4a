package cluster

import (
	"math"
	"runtime/metrics"
	"time"
)

// busy tells how much of the processors that it may use the process keeps at work.
// Other processes are not counted. The zero value begins with none. It is for one
// goroutine.
type busy struct {
	idle, total float64 // seconds, as of the last count
	part        float64
	looked      time.Time
}

// look gives the part of the processors' time, 0 to 1, that the process has used
// of late. The runtime counts it whenever it collects garbage, which it does often
// where much is done: while it does not, the part is taken to halve each second.
func (b *busy) look() float64 {
	now := []metrics.Sample{{Name: "/cpu/classes/idle:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}}
	metrics.Read(now)
	for _, s := range now {
		if s.Value.Kind() != metrics.KindFloat64 { // a Go without them
			return 1
		}
	}
	return b.note(time.Now(), now[0].Value.Float64(), now[1].Value.Float64())
}

// note is given how long the processors were idle, of how long in total.
func (b *busy) note(now time.Time, idle, total float64) float64 {
	if total > b.total {
		b.part = min(1, max(0, 1-(idle-b.idle)/(total-b.total)))
		b.idle, b.total = idle, total
	} else {
		b.part *= math.Exp2(-now.Sub(b.looked).Seconds())
	}
	b.looked = now
	return b.part
}
