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
		want := fmt.Sprintf(`429 Too Many Requests 7  {"call":%d,"key":"HIDDEN","by":"HIDDEN","for":"HIDDEN",`, []int{2, 1, 3}[i])
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
