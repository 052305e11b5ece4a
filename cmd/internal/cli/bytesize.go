package cli

import (
	"errors"
	"math"

	"github.com/dustin/go-humanize"
)

// byteSize is the value of a flag that is a number of bytes, such as 512MiB.
type byteSize int64

// Set reads a number with or without a unit.
func (s *byteSize) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return errors.New("write a number of bytes, or one with a unit, such as 512MiB")
	}
	*s = byteSize(n)
	return nil
}

// String is the number in its largest unit; empty for none.
func (s *byteSize) String() string {
	if *s == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*s))
}

// Type is how help names the value.
func (*byteSize) Type() string { return "bytes" }
