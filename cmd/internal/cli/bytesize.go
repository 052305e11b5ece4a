package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is the value of a flag that is a number of bytes, such as 512MiB.
type byteSize int64

var byteUnits = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// Set reads a number with or without a unit.
func (s *byteSize) Set(text string) error {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n <= 0 || n > math.MaxInt64/u.bytes {
			break
		}
		*s = byteSize(n * u.bytes)
		return nil
	}
	return fmt.Errorf("write a number of bytes, or one of KiB, MiB or GiB, such as 512MiB")
}

// String is the number in its largest unit; empty for none.
func (s *byteSize) String() string {
	if *s == 0 {
		return ""
	}
	for _, u := range byteUnits {
		if int64(*s)%u.bytes == 0 {
			return strconv.FormatInt(int64(*s)/u.bytes, 10) + u.suffix
		}
	}
	return ""
}

// Type is how help names the value.
func (*byteSize) Type() string { return "bytes" }
