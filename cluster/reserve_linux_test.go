package cluster_test

import "syscall"

// reserve keeps a port of the loopback from those who ask for any that is free, until leave
// is called: nobody listens there, and a server that names it is given it all the same.
func (w *world) reserve(port int) (leave func()) {
	w.t.Helper()
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	w.ok(err)
	w.ok(syscall.SetsockoptInt(s, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	w.ok(syscall.Bind(s, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}))
	return func() { _ = syscall.Close(s) }
}
