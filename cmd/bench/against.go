package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/reprise-dev/reprise/cmd/internal/bench"
)

// versus compares a program with an old one in pairs of measurements. names are
// the figures, which both must have; flags are more arguments.
type versus struct {
	old, fresh   string
	names, flags []string
	pairs        int
}

// program is one of those that are compared.
type program struct {
	path string
	args []string // before the name of a figure
}

// run measures figures with two programs in turn, which of them first changing from pair
// to pair. It prints the medians of both and the median of the ratios of the pairs.
func (v versus) run(ctx context.Context, o bench.Options) error {
	if len(v.names) == 0 || v.pairs < 1 {
		return fmt.Errorf("--against wants the names of benchmarks, and --pairs of at least 1")
	}
	var both [2]program
	var err error
	for i, path := range []string{v.old, v.fresh} {
		if both[i], err = open(ctx, path, v.names); err != nil {
			return err
		}
	}
	out := bench.NewReport(o.Out, o.JSON)
	for _, name := range v.names {
		pairs := make([]pair, v.pairs)
		for i := range pairs {
			_, _ = fmt.Fprintf(o.Progress, "%s: pair %d of %d\n", name, i+1, v.pairs) // progress is a courtesy
			for k := range both {
				which := (i + k) % len(both) // each is first in every other pair
				if pairs[i][which], err = both[which].rows(ctx, name, v.flags); err != nil {
					return err
				}
			}
		}
		if !o.JSON {
			_, _ = fmt.Fprintf(o.Out, "\n%s, medians of %d pairs of old and new\n", name, v.pairs) // Flush reports a broken writer
		}
		title := ""
		for _, row := range compare(pairs) {
			if row.Title() != title { // a table for each
				if err := out.Flush(); err != nil {
					return err
				}
				title = row.Title()
			}
			if err := out.Add(row); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// open finds out how a program is asked for figures: one of this kind by their names, reprise
// by its command bench. Its error names a figure that the program does not have, so that a
// long comparison does not fail in its middle.
func open(ctx context.Context, path string, names []string) (program, error) {
	help, err := output(ctx, path, "--help")
	p := program{path: path}
	if err == nil && !bytes.Contains(help, []byte("\n  growth ")) {
		p.args = []string{"bench"}
		help, err = output(ctx, path, "bench", "--help")
	}
	for _, name := range names {
		if err == nil && !bytes.Contains(help, []byte("\n  "+name+" ")) {
			err = fmt.Errorf("%s has no benchmark %q: name figures that both programs have", path, name)
		}
	}
	return p, err
}

// pair is what the old and the new program found, one directly after the other.
type pair [2][]bench.Row

// rows returns what a program prints of a figure. A ratio is a row of its own.
func (p program) rows(ctx context.Context, name string, flags []string) (rows []bench.Row, err error) {
	out, err := output(ctx, p.path, slices.Concat(p.args, []string{name, "-o", "json"}, flags)...)
	if err != nil {
		return nil, err
	}
	for from := json.NewDecoder(bytes.NewReader(out)); from.More(); {
		var r bench.Row
		if err := from.Decode(&r); err != nil {
			return nil, fmt.Errorf("read what %s printed of %s: %w", p.path, name, err)
		}
		if r.Sync == "" {
			continue // of the disk, not of a figure
		}
		ratio := r
		ratio.Figure, ratio.Value, ratio.Unit = r.Figure+" / "+r.RatioTo, r.Ratio, "x"
		r.Ratio, r.RatioTo = 0, ""
		if rows = append(rows, r); ratio.RatioTo != "" {
			ratio.Ratio, ratio.RatioTo = 0, ""
			rows = append(rows, ratio)
		}
	}
	return rows, nil
}

// output runs a program to its end; its errors are in the error.
func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	var wrong bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its own children and removes its folders
	cmd.WaitDelay = bench.Patience
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		said := bytes.TrimSpace(wrong.Bytes())
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, said[max(0, len(said)-2<<10):])
	}
	return out, nil
}

// compare returns two rows for each that the programs printed: the median of the old
// one, and that of the new one with the median of the pairs' ratios. A row that only
// one of the programs prints has no ratio.
func compare(pairs []pair) (rows []bench.Row) {
	var seen []bench.Row // without values
	for _, p := range pairs {
		for _, r := range slices.Concat(p[1], p[0]) {
			if r.Value = 0; !slices.Contains(seen, r) {
				seen = append(seen, r)
				rows = append(rows, compared(r, pairs)...)
			}
		}
	}
	return rows
}

// compared returns the rows of one measurement.
func compared(r bench.Row, pairs []pair) (rows []bench.Row) {
	var old, fresh, ratios []float64
	for _, p := range pairs {
		a, b := values(p[0], r), values(p[1], r)
		old, fresh = append(old, a...), append(fresh, b...)
		if len(a) > 0 && len(b) > 0 && a[0] > 0 && b[0] > 0 {
			ratios = append(ratios, b[0]/a[0])
		}
	}
	if len(old) > 0 {
		before := r
		before.Figure, before.Value = r.Figure+", old", median(old)
		rows = append(rows, before)
	}
	if len(fresh) > 0 {
		r.Value = median(fresh)
		if len(ratios) > 0 {
			r.Ratio, r.RatioTo = median(ratios), "old"
		}
		rows = append(rows, r)
	}
	return rows
}

// values returns the value of the same measurement as r, if there is one.
func values(rows []bench.Row, r bench.Row) []float64 {
	for _, row := range rows {
		if r.Value = row.Value; row == r {
			return []float64{r.Value}
		}
	}
	return nil
}
