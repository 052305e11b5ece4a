package blocks

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
