package cluster

import "github.com/reprise-dev/reprise/cluster/integrity"

// evidence is what the index asks, and knows, about the streams that it is built from.
type evidence struct{ *integrity.Monitor }

func (e evidence) identity(shard int) string     { return e.Identity(shard) }
func (e evidence) witness(shard int, seq uint64) { e.Witness(shard, seq) }
func (e evidence) witnessed()                    { e.Witnessed() }
func (e evidence) relied(shard int) error        { return e.Relied(shard) }
