package cli

import (
	"bytes"
	"testing"

	"github.com/reprise-dev/reprise/cluster/client"
	"github.com/reprise-dev/reprise/messages"
)

// A list that does not show everything ends in an error that names each partition once, also where a
// program reads it.
func TestUncoveredListFails(t *testing.T) {
	var of coverage
	of.take(client.Lacks{Uncovered: []messages.Uncovered{{Partition: 12, Indexed: 4100, End: 9000}, {Partition: 3, Reason: "has no owner"}}})
	of.take(client.Lacks{Uncovered: []messages.Uncovered{{Partition: 12, Indexed: 5000, End: 9000}}}) // the next page
	for format, want := range map[string]string{
		"text": "",
		"json": `{"type":"uncovered","uncovered":[{"partition":3,"reason":"has no owner"},{"partition":12,"indexed":5000,"end":9000}]}` + "\n",
	} {
		var out bytes.Buffer
		a := &app{output: format, out: &output{Writer: &out}}
		err := a.covered(of, nil)
		if f := a.failure(err); f.code != exitFailed || f.what != "partition 3 has no owner\npartition 12 indexed to 5,000 of 9,000" || out.String() != want {
			t.Errorf("%s: it says %q, and exits %d with %q", format, out.String(), f.code, f.what)
		}
		if err := a.covered(nil, nil); err != nil {
			t.Errorf("%s: a whole list fails: %v", format, err)
		}
	}
}
