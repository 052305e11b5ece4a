package cassette_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-dev/reprise/providers/providertest/cassette"
)

// failures is a test that notes how it fails.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}
func (f *failures) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(f)
}

// exchanged sends a body with a key, and returns the answer.
func exchanged(t *testing.T, c *http.Client, url, key, body string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.Status + " " + resp.Header.Get("Retry-After") + " " + resp.Header.Get("X-Request-Id") + " " + string(b), err
}

// What servers answered is played again from a file that holds no key and no account.
func TestCassette(t *testing.T) {
	const key, other, account, named = "wholly-secret-key-1", "another-secret-key-2", "org-AbCdEf123456", "ACCT 9 of Ms. Example"
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Retry-After", "7")
		w.Header().Set("X-Request-Id", account)
		w.Header().Set("Openai-Organization", account)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = fmt.Fprintf(w, `{"call":%d,"key":%q,"by":%q,"for":%q,"size":%d}`, calls, r.Header.Get("Authorization"), account, named, len(body))
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "talk.yaml")
	const one, two = `{"model":"m","n":1,"user":"` + key + `"}`, `{"model":"m","n":2}`
	t.Run("record", func(t *testing.T) {
		t.Setenv(cassette.RecordVariable, "1")
		c := cassette.Client(t, file, named)
		for i, body := range []string{one, two, one} {
			got, err := exchanged(t, c, s.URL+"/v1/chat?api-version=2024-10-21&key="+other, key, body)
			if err != nil || !strings.Contains(got, key) || !strings.Contains(got, fmt.Sprintf(`"call":%d`, i+1)) {
				t.Fatalf("got %s, %v", got, err)
			}
		}
	})
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{key, other, account, named, "2024-10-21", strings.TrimPrefix(s.URL, "http://")} {
		if strings.Contains(string(kept), secret) {
			t.Errorf("%s is in %s", secret, kept)
		}
	}
	s.Close()
	f := &failures{TB: t}
	c := cassette.Client(f, file, named)
	if _, err := exchanged(t, c, "http://elsewhere.invalid/v1/other", key, two); err == nil || len(f.texts) != 1 {
		t.Errorf("another path: %v, %v", err, f.texts)
	}
	f.texts = nil
	for i, body := range []string{`{"n":2,"model":"m"}`, strings.Replace(one, key, other, 1), strings.Replace(one, key, other, 1)} {
		got, err := exchanged(t, c, "http://elsewhere.invalid/v1/chat?api-version=new", other, body)
		want := fmt.Sprintf(`429 Too Many Requests 7  {"call":%d,"key":"Bearer [hidden key]","by":"HIDDEN","for":"[hidden key]",`, []int{2, 1, 3}[i])
		if err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	if len(f.texts) != 0 {
		t.Errorf("the test failed: %v", f.texts)
	}
	if _, err := exchanged(t, c, "http://elsewhere.invalid/v1/chat", key, `{"n":3}`); err == nil || len(f.texts) != 1 || !strings.Contains(f.texts[0], cassette.RecordVariable) {
		t.Errorf("got %v, %v", err, f.texts)
	}
}

// What of an exchange is secret, and what is not.
func TestCassetteHides(t *testing.T) {
	bearer := func(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }
	for _, c := range []struct {
		name         string
		header       http.Header
		path, answer string
		secrets      []string
		want         string // what is kept of the answer
	}{
		{"a secret of few bytes", nil, "/", `{"by":"hunter2"}`, []string{"hunter2"}, `{"by":"[hidden key]"}`},
		{"a key that is escaped", bearer("abc+def/ghi/jkl="), "/", `{"error":"bad abc\u002bdef\/ghi/jkl="}`, nil, `{"error":"bad [hidden key]"}`},
		{"a key that is escaped in a stream", bearer("abc+def/ghi/jkl="), "/", "data: {\"a\":\"abc\\u002bdef\\/ghi/jkl=\"}\n\n: x\n", nil, "data: {\"a\":\"[hidden key]\"}\n\n: x\n"},
		{"another scheme", http.Header{"Authorization": {"Basic d2hvbGx5OnNlY3JldA=="}}, "/", `bad d2hvbGx5OnNlY3JldA==`, nil, "bad [hidden key]"},
		{"a cookie", http.Header{"Cookie": {"a=1; session=session-of-the-team"}}, "/", "bad session-of-the-team", nil, "bad [hidden key]"},
		{"a key that begins with another", http.Header{"X-Key": {"example-corp-1"}, "Authorization": {"Bearer example-corp-1-9f8e"}}, "/", "example-corp-1-9f8e", nil, "[hidden key]"},
		{"what is no secret", http.Header{"Content-Type": {"application/json"}}, "/", "application/json", nil, "application/json"},
		{"names", nil, "/", "account_balance user_profile_of_customers user-friendliness key_performance_indicator", nil, "account_balance user_profile_of_customers user-friendliness key_performance_indicator"},
		{"ids", nil, "/", "org-AbCdEfGhIjKl, proj_0123456789ab! sk-0123456789abcdef", nil, "HIDDEN, HIDDEN! HIDDEN"},
		{"a path", nil, "/v1/acct_0123456789ab/me and I", "yes", []string{"me and I"}, "yes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, c.answer) }))
			defer s.Close()
			file := filepath.Join(t.TempDir(), "talk.yaml")
			get := func(t *testing.T) string {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+strings.ReplaceAll(c.path, " ", "%20"), nil)
				if err != nil {
					t.Fatal(err)
				}
				if c.header != nil {
					r.Header = c.header.Clone()
				}
				resp, err := cassette.Client(t, file, c.secrets...).Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				b, _ := io.ReadAll(resp.Body)
				return string(b)
			}
			t.Run("record", func(t *testing.T) {
				t.Setenv(cassette.RecordVariable, "1")
				get(t)
			})
			if got := get(t); got != c.want {
				t.Errorf("kept %q, want %q", got, c.want)
			}
			if kept, err := os.ReadFile(file); err != nil || strings.Contains(string(kept), "acct_0") || strings.Contains(string(kept), "me%20and") {
				t.Errorf("%v: %s", err, kept)
			}
		})
	}
}

// A file that is not there is named, with what makes one.
func TestCassetteIsMissing(t *testing.T) {
	f := &failures{TB: t}
	defer func() {
		if recover() != any(f) || len(f.texts) != 1 || !strings.Contains(f.texts[0], "none.yaml") {
			t.Errorf("failed with %v", f.texts)
		}
	}()
	cassette.Client(f, filepath.Join(t.TempDir(), "none.yaml"))
}
