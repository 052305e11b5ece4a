package turntest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/messages"
)

// File is a story on disk.
type File struct {
	// Name is the file's name without .txt.
	Name string
	Path string
	Text string
}

// Files returns the stories of a folder, sorted by name. It fails the test if
// there are none.
func Files(t testing.TB, dir string) []File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no stories", err)
	}
	files := make([]File, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = File{Name: strings.TrimSuffix(filepath.Base(path), ".txt"), Path: path, Text: string(text)}
	}
	return files
}

// Story is what came of a story.
type Story struct {
	// Transcript is the text with the answers as they are now.
	Transcript string
	// Frames are those of the agent, in order. They have neither an epoch nor
	// the chain to the frame before, which belong to the owner who appends them.
	Frames []*messages.Frame
}

// Play plays a story of an agent. A line that is no command fails the test.
func Play(t testing.TB, agent messages.AgentID, text string) Story {
	t.Helper()
	s := New(t)
	s.Env.Agent = agent
	transcript := s.Play(text)
	return Story{Transcript: transcript, Frames: s.Log}
}

// Play plays a text from where the stage is and returns it with the answers as
// they are now.
func (s *Stage) Play(text string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line != "----" {
			out.WriteString(line + "\n")
			if line != "" && line[0] != '#' {
				s.Do(line)
			}
			continue
		}
		for i+1 < len(lines) && lines[i+1] != "" {
			i++ // the old answer
		}
		fmt.Fprintf(&out, "----\n%s", s.answer())
	}
	return out.String()
}

// Difference returns the first line in which two texts differ.
func Difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
