package cluster

// Closed reports whether the node was closed, or has begun to.
func (n *Node) Closed() bool { return n.ending.Load() }
