package messages

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"
)

// Marshal writes v as events are stored: msgpack, fields named by json tags.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := msgpack.GetEncoder()
	defer msgpack.PutEncoder(e)
	e.Reset(&buf)
	e.SetCustomStructTag("json")
	e.UseCompactInts(true)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Unmarshal reads what Marshal wrote. Bytes from anywhere are safe: they are
// refused if malformed or nested too deep.
func Unmarshal(data []byte, v any) error {
	if err := checkMsgpack(data); err != nil {
		return err
	}
	d := decoder(data)
	defer msgpack.PutDecoder(d)
	return d.Decode(v)
}
