package config

// EncryptionConfig is the section encryption: where the wrapping key is. At most
// one of its fields is set.
type EncryptionConfig struct {
	// Key holds the wrapping keys, separated by commas, the newest first.
	Key Secret
	// KeyFile holds them in a file: an absolute path, or seen from the folder of
	// the file.
	KeyFile string
	// Line and Col are where the file says so, counted from 1. Zero: it does not.
	Line, Col int
}

func (r *reader) encryption(n *node) {
	e := &r.config.Encryption
	var key string
	r.fields(n, &encryptionKeys, "encryption", map[string]func(*node){
		"key":      r.line("key", &key),
		"key_file": r.path("key_file", &e.KeyFile),
	})
	e.Key = Secret(key)
	for _, name := range []string{"key", "key_file"} {
		if n.kind == mapping && n.get(name) != nil {
			e.Line, e.Col = n.get(name).at.line, n.get(name).at.col
		}
	}
	if n.kind == mapping && n.get("key") != nil && n.get("key_file") != nil {
		r.add(n.at, "keep one of them", "encryption has both key and key_file")
	}
	if (n.kind == mapping || n.kind == empty) && key == "" && e.KeyFile == "" { // an empty section must not pass as none
		r.add(n.at, `write key: "${REPRISE_KEY}", or key_file: and a path; or remove the section`, "encryption names no key")
	}
}
