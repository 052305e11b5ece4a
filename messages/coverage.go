package messages

import "fmt"

// Uncovered is a partition of which a view of all agents does not show everything.
type Uncovered struct {
	Partition Partition `json:"partition"`
	// Reason is why nothing of it is shown, such as "has no owner". Empty: it is shown as far as
	// it was read.
	Reason string `json:"reason,omitempty"`
	// Indexed is how far it was read, as a sequence of its stream.
	Indexed uint64 `json:"indexed,omitempty"`
	// End is where it ends, as a sequence of its stream.
	End uint64 `json:"end,omitempty"`
}

// String returns what a person reads of it.
func (u Uncovered) String() string { return fmt.Sprintf("partition %s %s", u.Partition, u.What()) }

// What returns what is said of the partition: the reason, or how far it is shown.
func (u Uncovered) What() string {
	if u.Reason != "" {
		return u.Reason
	}
	return fmt.Sprintf("indexed to %s of %s", grouped(u.Indexed), grouped(u.End))
}

// grouped returns a number with a comma between each three digits.
func grouped(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
