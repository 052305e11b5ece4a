package cli

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{
		"512MiB": 512 << 20, "1.5GiB": 3 << 29, "3kb": 3000, "1000": 1000, "2 KiB": 2048,
		"": 0, "MiB": 0, "0": 0, "-1MiB": 0, "1XB": 0, "9999999999GiB": 0, "9EiB": 0,
	} {
		var s byteSize
		if err := s.Set(text); s != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v", text, s, err)
		}
	}
}
