package encrypted_test

import (
	"fmt"
	"strings"

	"github.com/reprise-dev/reprise/eventlog/encrypted"
)

// Wrapping keys as a file or REPRISE_KEY holds them, the newest first.
func ExampleParseKeys() {
	keys, err := encrypted.ParseKeys(strings.Repeat("0a", 32) + "\n" + strings.Repeat("0b", 32))
	fmt.Println(len(keys), err)
	_, err = encrypted.ParseKeys("short")
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// wrapping key 1 has 5 characters and is not 32 bytes in hex or base64: make one with openssl rand -hex 32
}
