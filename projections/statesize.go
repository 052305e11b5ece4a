package projections

import "encoding/json"

// valueBytes is about what a value of the state takes in memory beside its text, in bytes.
const valueBytes = 48

// Size estimates how many bytes of memory the state takes, by walking all of it.
func (s *State) Size() int { return sizeOfValue(s.value) }

func sizeOfValue(v any) int {
	size := valueBytes
	switch v := v.(type) {
	case string:
		size += len(v)
	case json.Number:
		size += len(v)
	case []any:
		for _, e := range v {
			size += sizeOfValue(e)
		}
	case map[string]any:
		for name, e := range v {
			size += len(name) + sizeOfValue(e)
		}
	}
	return size
}
