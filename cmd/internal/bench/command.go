package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Flags adds the options that users set.
func (o *Options) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.Dir, "dir", "", "`FOLDER` for temporary folders: its disk is measured (default: the system's)")
	f.StringSliceVar(&o.Sync, "sync", nil, "sync `MODES` of the embedded server (default: always,relaxed)")
	f.IntSliceVar(&o.Agents, "agents", nil, "`N,...`: the numbers of agents that work at the same time, one after the other (default: 1,64,512)")
	f.DurationVar(&o.Window, "window", 0, "`DURATION` of one window of turns (default: 0.9s)")
}

// List describes figures, a line each.
func List(figures []Figure) string {
	var b strings.Builder
	for _, f := range figures {
		fmt.Fprintf(&b, "\n  %-11s %s", f.Name, f.About)
	}
	return b.String()
}

// most is the largest number of agents that is measured.
const most = 1_000_000

// Choose returns the named figures, or all if none is named. Its error says what was
// mistaken in the names, or in o.
func (o *Options) Choose(figures []Figure, names []string) ([]Figure, error) {
	for _, n := range o.Agents {
		if n < 1 || n > most {
			return nil, fmt.Errorf("--agents %d: write numbers from 1 to %s", n, Whole(most))
		}
	}
	if o.Window < 0 {
		return nil, fmt.Errorf("--window %v: it must be positive", o.Window)
	}
	if len(names) == 0 {
		return figures, nil
	}
	var chosen []Figure
	for _, name := range names {
		i := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == name })
		if i < 0 {
			var all []string
			for _, f := range figures {
				all = append(all, f.Name)
			}
			return nil, fmt.Errorf("there is no benchmark %q: the names are %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, figures[i])
	}
	return chosen, nil
}
