package config

import (
	"strings"
)

// expansion is a text with its variables replaced.
type expansion struct {
	value string
	// unset are the variables that have no value and no default.
	unset []string
	// broken reports whether a ${ is no variable.
	broken bool
}

// expand replaces ${NAME} and ${NAME:-text}; $${ is a plain ${.
func expand(s string, env func(string) (string, bool)) expansion {
	var out strings.Builder
	var e expansion
	for {
		before, rest, found := strings.Cut(s, "${")
		if !found {
			break
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			out.WriteString(plain + "${")
			s = rest
			continue
		}
		inside, after, closed := strings.Cut(rest, "}")
		name, fallback, optional := strings.Cut(inside, ":-")
		if !closed || !variable(name) {
			e.broken = true
			return e
		}
		out.WriteString(before)
		value, set := env(name)
		switch {
		case optional && value == "":
			out.WriteString(fallback)
		case set:
			out.WriteString(value)
		default:
			e.unset = append(e.unset, name)
		}
		s = after
	}
	out.WriteString(s)
	e.value = out.String()
	return e
}

func variable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 128
}

// onlyVariable is the name in a text that is nothing but ${NAME}.
func onlyVariable(s string) (string, bool) {
	name, ok := strings.CutPrefix(s, "${")
	name, closed := strings.CutSuffix(name, "}")
	return name, ok && closed && variable(name)
}
