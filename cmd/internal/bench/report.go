package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Row is one figure as measured once.
type Row struct {
	Figure string `json:"figure"`
	// Agents is how many were at work at once.
	Agents int `json:"agents"`
	// Sync is the store's mode: always or relaxed; cache for the index,
	// whose file is one.
	Sync string `json:"sync"`
	// Nodes and Replicas are those of a cluster. Zero: it was one node in this
	// process.
	Nodes    int     `json:"nodes,omitempty"`
	Replicas int     `json:"replicas,omitempty"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	// Ratio is Value divided by that of the figure RatioTo. Zero: none was taken.
	Ratio   float64 `json:"ratio,omitempty"`
	RatioTo string  `json:"ratio_to,omitempty"`
}

// Report prints rows: as JSON at once, as a table when it is flushed.
type Report struct {
	json bool
	out  io.Writer
	rows []Row
}

// NewReport makes one.
func NewReport(out io.Writer, json bool) *Report { return &Report{json: json, out: out} }

// Add takes rows.
func (r *Report) Add(rows ...Row) error {
	for _, row := range rows {
		if !r.json {
			r.rows = append(r.rows, row)
			continue
		}
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(r.out, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

// Of is row with its ratio to a base.
func (row Row) Of(base float64, name string) Row {
	if base > 0 {
		row.Ratio, row.RatioTo = row.Value/base, name
	}
	return row
}

// Flush prints the gathered rows: a line for each figure, a column for each
// number of agents.
func (r *Report) Flush() error {
	if len(r.rows) == 0 {
		return nil
	}
	rows := r.rows
	r.rows = nil
	var agents []int
	var lines [][]Row // by figure and sync
	for _, row := range rows {
		if !slices.Contains(agents, row.Agents) {
			agents = append(agents, row.Agents)
		}
		i := slices.IndexFunc(lines, func(l []Row) bool { return l[0].Figure == row.Figure && l[0].Sync == row.Sync })
		if i < 0 {
			lines = append(lines, nil)
			i = len(lines) - 1
		}
		lines[i] = append(lines[i], row)
	}
	slices.Sort(agents)
	return r.table(rows[0].Title(), lines, agents)
}

// Title is what a table of such rows is called.
func (row Row) Title() string {
	switch row.Nodes {
	case 0:
		return "sync " + row.Sync
	case 1:
		return fmt.Sprintf("R%d, 1 node, sync %s", row.Replicas, row.Sync)
	}
	return fmt.Sprintf("R%d, %d nodes, sync %s", row.Replicas, row.Nodes, row.Sync)
}

// table prints lines. Names stand on the left of a table whose other columns
// are aligned to the right, so they are filled up to one width.
func (r *Report) table(title string, lines [][]Row, agents []int) error {
	width := len(title)
	for _, line := range lines {
		width = max(width, len(line[0].Figure), len("  / "+line[0].RatioTo))
	}
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "\n%-*s\tunit\t", width, title) // a writer's error comes back from Flush
	for _, n := range agents {
		name := Whole(n) + " agents"
		if n == 1 {
			name = "1 agent"
		}
		_, _ = fmt.Fprintf(w, "%s\t", name)
	}
	_, _ = fmt.Fprintln(w)
	for _, line := range lines {
		printLine(w, width, line, agents)
	}
	return w.Flush()
}

func printLine(w io.Writer, width int, line []Row, agents []int) {
	cells := make([]string, len(agents))
	ratios := make([]string, len(agents))
	base := ""
	for _, row := range line {
		i := slices.Index(agents, row.Agents)
		cells[i] = number(row.Value)
		if row.RatioTo != "" {
			base, ratios[i] = row.RatioTo, fmt.Sprintf("%.2f", row.Ratio)
		}
	}
	_, _ = fmt.Fprintf(w, "%-*s\t%s\t%s\t\n", width, line[0].Figure, line[0].Unit, strings.Join(cells, "\t"))
	if base != "" {
		_, _ = fmt.Fprintf(w, "%-*s\tx\t%s\t\n", width, "  / "+base, strings.Join(ratios, "\t"))
	}
}

// number writes three digits or more.
func number(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return Whole(int(v + 0.5))
}

// Whole writes n with commas.
func Whole(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
