package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestLogAsJSON(t *testing.T) {
	var b bytes.Buffer
	a := &app{err: &b, logging: logging{level: "info", format: "json"}}
	log, err := a.log()
	if err != nil {
		t.Fatal(err)
	}
	log.Info("took over", "took", 62483277*time.Nanosecond)
	a.note("%d partitions to go", 3)
	a.report(fail("start one first", "no node answers"))
	for i, want := range []string{`"took":"62.483277ms"`, `"msg":"3 partitions to go"`, `"msg":"no node answers","do":"start one first"`} {
		line, err := b.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, `{"time":`) || !strings.Contains(line, want) {
			t.Errorf("line %d: %s, %v, want %s", i+1, line, err, want)
		}
	}
}
