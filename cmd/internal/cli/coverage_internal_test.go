package cli

import (
	"bytes"
	"slices"
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

// Partitions of which the same is said share a line.
func TestUncoveredPartitionsShareALine(t *testing.T) {
	none := func(p messages.Partition) messages.Uncovered {
		return messages.Uncovered{Partition: p, Reason: "has no owner"}
	}
	list := []messages.Uncovered{none(0), none(3), {Partition: 4, Indexed: 5, End: 1000}, {Partition: 5, Indexed: 5, End: 9}, none(7), none(12), none(13), none(14), {Partition: 15, Indexed: 5, End: 9}, none(16), none(17)}
	want := []string{"each of partitions 0, 3, 7, 12-14, 16-17 has no owner", "partition 4 indexed to 5 of 1,000", "each of partitions 5, 15 indexed to 5 of 9"}
	if got := lacking(list); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
