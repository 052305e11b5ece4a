package blocks

import (
	"context"
	"fmt"
)

// broken reports whether the server cannot walk the records of the newest block of a
// stream whose index.db it trusts. It reads a block when a message in it is asked for, that
// of the newest at start, and looks at lengths and sequences before any checksum. Where a
// length is wrong it then rebuilds the block, and cuts it there; a sequence that is far too
// high has it note every one below as deleted until there is no memory left (nats-server
// v2.15.2, indexCacheBuf).
func (v *verifier) broken() (bool, error) {
	f := v.newest()
	if f.size == 0 || f.size > mostBlock {
		return false, nil
	}
	buf, err := f.read(nil)
	if err != nil {
		return false, err
	}
	if newBlock(v.s.Name, f.number, buf).compressed() {
		return false, nil
	}
	return !walks(buf, v.index.last), nil
}

// walks reports whether the lengths in a block lead from record to record, none of which
// has a sequence above last.
func walks(buf []byte, last uint64) bool {
	for off := 0; off < len(buf); {
		r, err := split(buf[off:])
		if err != nil || r.kind() != Tombstone && r.number() > last {
			return false
		}
		off += r.size
	}
	return true
}

// farthestIn is how far apart sequences in one block may be for Walk to believe them. The
// server lists what is deleted between two in memory.
const farthestIn = 1 << 26

// Walk returns the blocks of a stream, but for the newest, in which lengths or sequences
// cannot be right, so that the server would cut them when it reads a message there. It
// looks at no checksum, and may be called while a server runs: what it returns then may be a
// block that was being rewritten, and is to be walked again.
func Walk(ctx context.Context, s Stream) (broken []string, err error) {
	folder, err := s.folder()
	if err != nil {
		return nil, fmt.Errorf("walk stream %s: %w", s.Name, err)
	}
	files, err := blockFiles(folder)
	if err != nil {
		return nil, fmt.Errorf("walk stream %s: %w", s.Name, err)
	}
	var buf []byte
	for i := 0; i+1 < len(files) && ctx.Err() == nil; i++ {
		f := files[i]
		if f.size > mostBlock {
			continue
		}
		if buf, err = f.read(buf); err != nil { // the server removed or rewrote it
			continue
		}
		block := newBlock(s.Name, f.number, buf)
		if first, _ := split(buf); !block.compressed() && !walks(buf, first.number()+farthestIn) {
			broken = append(broken, f.path)
		}
	}
	return broken, ctx.Err()
}
