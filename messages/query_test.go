package messages

import (
	"errors"
	"strings"
	"testing"
)

// A filter that is passed over would look like an answer that has none.
func TestUnknownQueryField(t *testing.T) { // A102
	for body, field := range map[string]string{
		`{"view":"effects","tols":"refund"}`:       `"tols"`,
		`{"view":"blob","blob":{"sha":"feed"}}`:    `"sha"`,
		`{"view":"agents","newer":{"than":"now"}}`: `"newer"`,
	} {
		_, err := ParseQuery([]byte(body))
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != BadInput || !strings.Contains(err.Error(), "no field "+field) || !strings.Contains(err.Error(), "view, at, from, limit") {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := ParseQuery([]byte(`{"view":"effects","tool":"refund","where":{"any":"7"}}`)); err != nil {
		t.Error(err)
	}
}
