package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Versus says which two builds of reprise to compare. Old, Names and Pairs are required.
type Versus struct {
	// Old is the program that Options.Program is compared with.
	Old string
	// Names of the figures, which both must have; Flags are more arguments.
	Names, Flags []string
	// Pairs is how often each program measures each figure.
	Pairs int
}

// Against measures figures with two programs in turn, which of them first changing
// from pair to pair. It prints the medians of both and the median of the ratios of
// the pairs.
func Against(ctx context.Context, o Options, v Versus) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	programs := []string{v.Old, o.Program}
	for _, program := range programs {
		if err := hasFigures(ctx, program, v.Names); err != nil {
			return err
		}
	}
	l := &lab{Options: o, out: &report{json: o.JSON, out: o.Out}}
	for _, name := range v.Names {
		pairs := make([]pair, v.Pairs)
		for i := range pairs {
			l.say("%s: pair %d of %d", name, i+1, v.Pairs)
			for k := range programs {
				which := (i + k) % len(programs) // each is first in every other pair
				if pairs[i][which], err = v.rows(ctx, programs[which], name); err != nil {
					return err
				}
			}
		}
		if !o.JSON {
			_, _ = fmt.Fprintf(o.Out, "\n%s, medians of %d pairs of old and new\n", name, v.Pairs) // flush reports a broken writer
		}
		if err := l.compared(pairs); err != nil {
			return err
		}
	}
	return nil
}

// compared prints how rows compare, with a table for each title.
func (l *lab) compared(pairs []pair) error {
	title := ""
	for _, row := range compare(pairs) {
		if row.title() != title {
			if err := l.out.flush(); err != nil {
				return err
			}
			title = row.title()
		}
		if err := l.out.add(row); err != nil {
			return err
		}
	}
	return l.out.flush()
}

// hasFigures reports by its error which figure a program does not have, so that a
// long comparison does not fail in its middle.
func hasFigures(ctx context.Context, program string, names []string) error {
	help, err := output(ctx, program, "bench", "--help")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !bytes.Contains(help, []byte("\n  "+name+" ")) {
			return fmt.Errorf("%s has no benchmark %q: name figures that both programs have", program, name)
		}
	}
	return nil
}

// pair is what the old and the new program found, one directly after the other.
type pair [2][]Row

// rows returns what a program prints of a figure. A ratio is a row of its own.
func (v Versus) rows(ctx context.Context, program, name string) (rows []Row, err error) {
	out, err := output(ctx, program, append([]string{"bench", name, "-o", "json"}, v.Flags...)...)
	if err != nil {
		return nil, err
	}
	for from := json.NewDecoder(bytes.NewReader(out)); from.More(); {
		var r Row
		if err := from.Decode(&r); err != nil {
			return nil, fmt.Errorf("read what %s bench %s printed: %w", program, name, err)
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
	var wrong tail
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its own children and removes its folders
	cmd.WaitDelay = patience
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, &wrong)
	}
	return out, nil
}

// compare returns two rows for each that the programs printed: the median of the old
// one, and that of the new one with the median of the pairs' ratios. A row that only
// one of the programs prints has no ratio.
func compare(pairs []pair) (rows []Row) {
	for _, r := range printed(pairs) {
		var old, fresh, ratios []float64
		for _, p := range pairs {
			a, b := values(p[0], r), values(p[1], r)
			old, fresh = append(old, a...), append(fresh, b...)
			if len(a) > 0 && len(b) > 0 {
				ratios = append(ratios, over(b[0], a[0])...)
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
	}
	return rows
}

// printed returns one row of each measurement, without its value.
func printed(pairs []pair) (rows []Row) {
	for _, p := range pairs {
		for _, r := range slices.Concat(p[1], p[0]) {
			if r.Value = 0; !slices.Contains(rows, r) {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// values returns the value of the same measurement as r, if there is one.
func values(rows []Row, r Row) []float64 {
	for _, row := range rows {
		if r.Value = row.Value; row == r {
			return []float64{r.Value}
		}
	}
	return nil
}
