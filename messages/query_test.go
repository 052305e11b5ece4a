package messages

import (
	"errors"
	"strings"
	"testing"
)

// A query with an unknown field is refused. Were the field ignored, its filter would be missing.
func TestUnknownQueryField(t *testing.T) { // A102
	for body, field := range map[string]string{
		`{"view":"effects","tols":"refund"}`:       `"tols"`,
		`{"view":"blob","blob":{"sha":"feed"}}`:    `"sha"`,
		`{"view":"agents","newer":{"than":"now"}}`: `"newer"`,
	} {
		_, err := ParseQuery([]byte(body))
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != BadInput || !strings.Contains(err.Error(), "no field "+field) || !strings.Contains(err.Error(), "view, at, from, limit") {
			t.Errorf("%s: got error %v, want no field %s", body, err, field)
		}
	}
	if _, err := ParseQuery([]byte(`{"view":"effects","tool":"refund","where":{"any":"7"}}`)); err != nil {
		t.Errorf("query of effects: got error %v, want none", err)
	}
}
