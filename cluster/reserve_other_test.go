//go:build !linux

package cluster_test

// reserve keeps nothing here: elsewhere than on Linux a socket that keeps a port from
// others keeps it from the server too.
func (w *world) reserve(int) (leave func()) { return func() {} }
