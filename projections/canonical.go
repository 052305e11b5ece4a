package projections

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
)

// CanonicalJSON returns a JSON text with sorted keys and without spaces, each number in one
// spelling: 1, 1.0 and 10e-1 are one. What is no JSON is returned as it is.
func CanonicalJSON(s string) string {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return s
	}
	b, err := json.Marshal(spell(v))
	if err != nil {
		return s
	}
	return string(b)
}

// spell writes every number in v as digits that neither begin nor end with 0 and
// a power of ten: 1, 1.0 and 10e-1 are one.
func spell(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = spell(v[k])
		}
	case []any:
		for i := range v {
			v[i] = spell(v[i])
		}
	case json.Number:
		return json.Number(spellNumber(string(v)))
	}
	return v
}

// spellNumber takes a JSON number apart as text: its size does not matter.
func spellNumber(s string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	power, err := strconv.Atoi(cmp.Or(exponent, "0"))
	if err != nil {
		return s // a power that no number has
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	power -= len(fraction)
	short := strings.TrimRight(digits, "0")
	power += len(digits) - len(short)
	switch {
	case short == "":
		return "0"
	case negative:
		short = "-" + short
	}
	return short + "e" + strconv.Itoa(power)
}
