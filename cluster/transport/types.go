package transport

import (
	"fmt"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/reprise-dev/reprise/messages"
)

// Types are the messages that may travel, each under a name that does not change
// when its Go type does. They are registered before the first message and not after.
type Types struct {
	names  map[reflect.Type]string
	codecs map[string]codec
}

type codec struct {
	encode func(any) ([]byte, error)
	decode func([]byte) (any, error)
}

const deadLetter = "dead"

// NewTypes holds what the transport itself sends.
func NewTypes() *Types {
	t := &Types{names: make(map[reflect.Type]string), codecs: make(map[string]codec)}
	RegisterAs(t, deadLetter,
		func(*actor.DeadLetterResponse) ([]byte, error) { return nil, nil },
		func([]byte) (*actor.DeadLetterResponse, error) { return new(actor.DeadLetterResponse), nil })
	return t
}

// Register lets messages of type *M travel, as messages.Pack writes them.
func Register[M any](t *Types, name string) {
	RegisterAs(t, name,
		func(m *M) ([]byte, error) { return messages.Pack(m) },
		func(b []byte) (*M, error) {
			m := new(M)
			return m, messages.UnpackKnown(b, m)
		})
}

// RegisterAs lets messages of type *M travel in a form of their own. decode gets what
// anybody may have sent: it must not panic.
func RegisterAs[M any](t *Types, name string, encode func(*M) ([]byte, error), decode func([]byte) (*M, error)) {
	t.names[reflect.TypeFor[*M]()] = name
	t.codecs[name] = codec{
		encode: func(m any) ([]byte, error) { return encode(m.(*M)) },
		decode: func(b []byte) (any, error) { return decode(b) },
	}
}

func (t *Types) encode(m any) (name string, body []byte, err error) {
	name, ok := t.names[reflect.TypeOf(m)]
	if !ok {
		return "", nil, fmt.Errorf("a message of type %T does not travel between nodes", m)
	}
	body, err = t.codecs[name].encode(m)
	return name, body, err
}

func (t *Types) decode(name string, body []byte) (any, error) {
	c, ok := t.codecs[name]
	if !ok {
		return nil, unknown(name)
	}
	return c.decode(body)
}
