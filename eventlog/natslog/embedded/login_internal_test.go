package embedded

import "testing"

func TestMayListen(t *testing.T) {
	for _, c := range []struct {
		config Config
		may    bool
	}{
		{Config{Host: "127.0.0.1"}, true},
		{Config{Host: "127.8.0.1"}, true},
		{Config{Host: "::1"}, true},
		{Config{Host: "LocalHost"}, true},
		{Config{Host: "0.0.0.0", DontListen: true}, true},
		{Config{Host: "0.0.0.0", Insecure: true}, true},
		{Config{Host: "0.0.0.0", Login: Login{Token: "t"}}, true},
		{Config{Host: "0.0.0.0"}, false},
		{Config{Host: "10.0.0.1"}, false},
		{Config{Host: "localhost.example.com"}, false},
	} {
		if err := c.config.mayListen(); (err == nil) != c.may {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}
