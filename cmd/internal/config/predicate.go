package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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

// predicate is an expression that says whether a call needs approval.
type predicate struct{ program *vm.Program }

// needsApproval evaluates the expression. An error means that it cannot tell.
func (p predicate) needsApproval(raw json.RawMessage) (bool, error) {
	args, err := look(raw)
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
// product wraps around.
func look(raw json.RawMessage) (map[string]any, error) {
	if len(raw) > maxLooked {
		return nil, fmt.Errorf("the arguments are longer than %d bytes", maxLooked)
	}
	l := looker{d: json.NewDecoder(bytes.NewReader(raw))}
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
	d     *json.Decoder
	count int
}

func (l *looker) value(depth int) (any, error) {
	if l.count++; l.count > maxLookedCount {
		return nil, fmt.Errorf("there are more than %d values in the arguments", maxLookedCount)
	}
	if depth > maxLookedDepth {
		return nil, fmt.Errorf("the arguments nest more than %d levels deep", maxLookedDepth)
	}
	token, err := l.d.Token()
	if err != nil {
		return nil, fmt.Errorf("the arguments are no JSON: %w", err)
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
	return items, l.end()
}

func (l *looker) object(depth int) (any, error) {
	fields := map[string]any{}
	for l.d.More() {
		token, err := l.d.Token()
		if err != nil {
			return nil, fmt.Errorf("the arguments are no JSON: %w", err)
		}
		name, _ := token.(string) // the decoder lets nothing else stand here
		if _, twice := fields[name]; twice {
			return nil, errors.New("a field stands in the arguments twice")
		}
		if fields[name], err = l.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return fields, l.end()
}

func (l *looker) end() error {
	if _, err := l.d.Token(); err != nil {
		return fmt.Errorf("the arguments are no JSON: %w", err)
	}
	return nil
}
