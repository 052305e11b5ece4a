package cli

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]string{
		"512MiB": "512MiB", "1024MiB": "1GiB", "3KiB": "3KiB", "1000": "1000", "2048": "2KiB",
		"": "", "MiB": "", "0": "", "-1MiB": "", "1MB": "", "1.5GiB": "", "9999999999GiB": "",
	} {
		var s byteSize
		if err := s.Set(text); s.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, s.String(), err)
		}
	}
}
