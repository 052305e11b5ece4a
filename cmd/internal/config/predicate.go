package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// What an expression looks at. Beyond, a person is asked without it: it must
// not take long, nor be led astray by what other programs would read otherwise.
const (
	maxLooked      = 64 << 10 // bytes of arguments
	maxLookedCount = 2048     // values in them
	maxLookedDepth = 64
	maxLookedNum   = 1 << 53 // below it a float64 holds every whole number exactly
)

// predicate is an expression that reports whether a call needs approval.
type predicate struct {
	program *vm.Program
	// spelled are the texts of the expression, names among them, by their folded
	// form.
	spelled map[string][]string
}

// needsApproval evaluates the expression. An error means that it cannot be decided.
func (p predicate) needsApproval(raw json.RawMessage) (bool, error) {
	args, err := p.look(raw)
	if err != nil {
		return false, fmt.Errorf("approval: %w", err)
	}
	machine := vm.VM{MemoryBudget: 4 * maxLookedCount}
	out, err := machine.Run(p.program, map[string]any{"args": args})
	if err != nil {
		why := "" // without the expression, which the compiler's own error quotes
		if e := new(file.Error); errors.As(err, &e) {
			why = ": " + e.Message
		}
		return false, fmt.Errorf("approval: the expression cannot be evaluated for these arguments%s", why)
	}
	needs, ok := out.(bool)
	if !ok {
		return false, errors.New("approval: for these arguments the expression gives neither true nor false")
	}
	return needs, nil
}

// look reads arguments for an expression: numbers as float64, so that no sum or
// product wraps around. Names that some programs take for another one, or for
// one of the expression's, are an error: what is looked at must be what runs.
func (p predicate) look(raw json.RawMessage) (map[string]any, error) {
	if len(raw) > maxLooked {
		return nil, fmt.Errorf("the arguments are longer than %d bytes", maxLooked)
	}
	l := looker{d: json.NewDecoder(bytes.NewReader(raw)), spelled: p.spelled}
	l.d.UseNumber()
	v, err := l.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := l.d.Token(); err != io.EOF {
		return nil, errors.New("something follows the arguments")
	}
	args, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("the arguments are no object")
	}
	return args, nil
}

type looker struct {
	d       *json.Decoder
	count   int
	spelled map[string][]string
}

func (l *looker) value(depth int) (any, error) {
	if l.count++; l.count > maxLookedCount {
		return nil, fmt.Errorf("there are more than %d values in the arguments", maxLookedCount)
	}
	if depth > maxLookedDepth {
		return nil, fmt.Errorf("the arguments nest more than %d levels deep", maxLookedDepth)
	}
	token, err := l.token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			return l.list(depth)
		}
		return l.object(depth)
	case json.Number:
		f, err := token.Float64()
		if err != nil || f >= maxLookedNum || f <= -maxLookedNum {
			return nil, errors.New("a number in the arguments is too large")
		}
		return f, nil
	}
	return token, nil
}

func (l *looker) list(depth int) (any, error) {
	items := []any{}
	for l.d.More() {
		item, err := l.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := l.token()
	return items, err
}

func (l *looker) object(depth int) (any, error) {
	fields, seen := map[string]any{}, map[string]bool{}
	for l.d.More() {
		token, err := l.token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder lets nothing else be here
		if err := l.name(name, seen); err != nil {
			return nil, err
		}
		if fields[name], err = l.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := l.token()
	return fields, err
}

// name holds that a field is not another one of the object, nor one that the
// expression names, but for upper and lower case.
func (l *looker) name(name string, seen map[string]bool) error {
	f := folded(name)
	if seen[f] {
		return errors.New("a field stands in the arguments twice, or differs from another one by upper and lower case alone")
	}
	seen[f] = true
	if meant := l.spelled[f]; len(meant) > 0 && !slices.Contains(meant, name) {
		return errors.New("a field in the arguments differs by upper and lower case alone from what the expression names")
	}
	return nil
}

// folded is a name as it is read where upper and lower case are the same.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, name)
}

func (l *looker) token() (json.Token, error) {
	token, err := l.d.Token()
	if err != nil {
		return nil, fmt.Errorf("the arguments are no JSON: %w", err)
	}
	return token, nil
}
