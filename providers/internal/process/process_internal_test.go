package process

import (
	"runtime"
	"testing"
)

func TestInherits(t *testing.T) {
	for name, want := range map[string]bool{
		"PATH": true, "HOME": true, "USER": true, "LANG": true, "LC_ALL": true, "TZ": true, "TMPDIR": true,
		"HTTPS_PROXY": true, "https_proxy": true, "no_proxy": true, "SSL_CERT_FILE": true, "NODE_EXTRA_CA_CERTS": true,
		"Path": true, "SystemRoot": runtime.GOOS == "windows", "TEMP": runtime.GOOS == "windows",
		"NATS_URL": false, "DATABASE_URL": false, "GH_PAT": false, "SERVICE_PWD": false, "SSH_AUTH_SOCK": false,
		"REPRISE_AUTH": false, "OPENAI_API_KEY": false, "PATHS": false, "MY_HOME": false, "": false,
	} {
		if inherits(name) != want {
			t.Errorf("%s is inherited: %t", name, !want)
		}
	}
}

func TestTail(t *testing.T) {
	tests := []struct {
		writes []string
		want   string
	}{
		{[]string{"ab", "cd"}, "abcd"},
		{[]string{"abc", "def"}, "…cdef"},
		{[]string{"abcdefgh"}, "…efgh"},
		{[]string{"aéé\n"}, "…é"}, // the first é lost its first byte
	}
	for _, test := range tests {
		l := &Tail{Limit: 4}
		for _, w := range test.writes {
			if n, err := l.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("writing %q gives %d, %v", w, n, err)
			}
		}
		if got := l.Text(); got != test.want {
			t.Errorf("the end of %q is %q; want %q", test.writes, got, test.want)
		}
	}
}
