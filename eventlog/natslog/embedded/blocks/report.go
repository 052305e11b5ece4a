package blocks

import "fmt"

// Report is what Verify found.
type Report struct {
	// Rebuild reports whether the server will read every block at its next start, because
	// index.db is missing, unreadable or out of date, and cut each at the first record
	// that it finds bad. It is false for an encrypted stream, of which nothing is known.
	Rebuild bool
	// Blocks and Bytes are how much was read.
	Blocks int
	Bytes  int64
	// Messages, Erased and Tombstones are how many good records of each kind there are.
	Messages, Erased, Tombstones uint64
	// First is the sequence of the first message, Last the highest sequence that any
	// good record names. If nothing was read they are what index.db says.
	First, Last uint64
	// Deleted are the sequences that tombstones name and, unless the server will rebuild
	// index.db, those that it does not list. A message among them is deleted although its
	// record may still be there.
	Deleted []Span
	// Gaps are sequences between records of which there is no trace.
	Gaps []Gap
	// Torn is the torn end of the newest block; nil if there is none.
	Torn *Torn
	// Damage is every bad place, in the order of the blocks.
	Damage []Damage
	// Unverified are the blocks that could not be checked.
	Unverified []Unverified
}

// Torn is an end of the newest block that a crash left half written. It held nothing
// that was acknowledged, as far as is known; the server cuts it off.
type Torn struct {
	File   string
	Offset int64
	Length int64
	Err    error // what is wrong with the first record there
}

// Gap is a range of sequences between two records that are neither stored nor erased nor
// named by a tombstone, and that index.db does not show to have been deleted before it was
// written. Purges that empty a block and limits leave such gaps, and so does a lost block
// file: the blocks do not show which it was. A person who knows that nothing was deleted
// since index.db was written knows that what it lists is lost.
type Gap struct {
	Span
	After, Before uint32 // the blocks on both sides, which may be one; After is 0 at the head
	Listed        uint64 // how many of them were messages when index.db was written
}

// Unverified is a file that could not be checked, and why.
type Unverified struct{ File, Reason string }

// Damage is a bad place in a stream.
type Damage struct {
	File   string
	Block  uint32 // its number; 0 if the file is no block
	Offset int64
	Length int64 // how many bytes are bad; 0 if something is missing there
	// First and Last are the sequences concerned: one, or a range in which it lies. First
	// is 0 if it is unknown how far down they reach; both are if no message is concerned.
	First, Last uint64
	// Subject is what can be read of the record's subject. Unless the record's checksum
	// matches it may be wrong.
	Subject string
	Err     error // what is wrong

	followed bool // by a record, so that Last is known
}

// Error says where the damage is, what is concerned, what is wrong and what to do.
func (d Damage) Error() string {
	text := fmt.Sprintf("%s is damaged", d.File)
	if d.Block > 0 {
		text += fmt.Sprintf(" at offset %d (%d bytes)", d.Offset, d.Length)
	}
	text += d.concerned()
	if d.Subject != "" {
		text += fmt.Sprintf(", subject %q", d.Subject)
	}
	return fmt.Sprintf("%s: %v; restore the folder from a backup, or set the damaged records aside before a server opens it", text, d.Err)
}

func (d Damage) concerned() string {
	switch {
	case d.Last == 0:
		return ", no message is concerned"
	case d.First == 0:
		return fmt.Sprintf(", sequences up to %d", d.Last)
	case d.First == d.Last:
		return fmt.Sprintf(", sequence %d", d.Last)
	}
	return fmt.Sprintf(", within sequences %d to %d", d.First, d.Last)
}

// Unwrap returns what is wrong.
func (d Damage) Unwrap() error { return d.Err }
