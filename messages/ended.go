package messages

// Ended is the inputs that ev is the terminal event of; false if it is none. A
// turn that continues a failed one ends without inputs of its own.
func Ended(ev Event) (inputs []string, ends bool) {
	switch ev := ev.(type) {
	case TurnCompleted:
		return ev.Inputs, true
	case TurnFailed:
		return ev.Inputs, true
	case TurnAborted:
		return ev.Inputs, true
	case InputCancelled:
		return []string{ev.Input}, true
	case InputDropped:
		return []string{ev.Input}, true
	}
	return nil, false
}
