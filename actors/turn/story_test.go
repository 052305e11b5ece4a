package turn_test

import (
	"flag"
	"os"
	"testing"

	"github.com/reprise-dev/reprise/actors/turn/turntest"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the answers in testdata; read the diff")

// TestStories plays every file of testdata. Run it with -rewrite to write the
// answers as they are now.
func TestStories(t *testing.T) {
	for _, file := range turntest.Files(t, "testdata") {
		t.Run(file.Name, func(t *testing.T) {
			got := turntest.New(t).Play(file.Text)
			if *rewrite {
				if err := os.WriteFile(file.Path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != file.Text {
				t.Errorf("the story is different; first difference:\n%s", turntest.Difference(file.Text, got))
			}
		})
	}
}
