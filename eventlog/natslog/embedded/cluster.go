package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Peers makes a server one of a cluster.
type Peers struct {
	// Name of the cluster, the same for all its servers.
	Name string
	// Listen is the address for the other servers, host:port.
	Listen string
	// All are the Listen addresses of all servers of the cluster, this one's too.
	All []string
}

// StartCluster runs n servers in this process, with routes among them on the
// loopback, each on a folder of its own below c.Dir. It returns when a leader is
// elected that knows them all, so that a stream with n replicas can be made; ctx
// bounds the wait. One server is no cluster: it stands alone. c.Port must be zero. It is for tests and benchmarks: the servers
// share the process's death. Connect to them by [ClientURLs], for [Server.Connect]
// knows its own server only. A server's Shutdown hands its leaderships on, as an
// orderly stop does; after it, Restart brings the server back on its folder and
// addresses.
func StartCluster(ctx context.Context, n int, c Config) (all []*Server, err error) {
	if n < 1 || c.Port != 0 {
		return nil, fmt.Errorf("a cluster of %d servers on port %d: want one server at least, and port 0", n, c.Port)
	}
	for range clusterTries {
		if all, err = startCluster(ctx, n, c); !taken(err) {
			break
		}
	}
	return all, err
}

// clusterTries is how often a cluster is started of which an address was taken.
const clusterTries = 5

// taken reports whether an address was taken after it was found to be free.
func taken(err error) bool {
	return err != nil && strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) // the server returns a text
}

// startCluster is StartCluster on addresses that were free just now.
func startCluster(ctx context.Context, n int, c Config) (_ []*Server, err error) {
	addresses, err := freeAddresses(n)
	if err != nil {
		return nil, err
	}
	var all []*Server
	defer func() {
		if err != nil {
			for _, s := range all {
				err = errors.Join(err, s.Shutdown())
			}
		}
	}()
	for i := range n {
		one := c
		one.Dir, one.ServerName = filepath.Join(c.Dir, strconv.Itoa(i)), fmt.Sprintf("reprise-%d", i)
		if n > 1 {
			one.Peers = &Peers{Name: "reprise", Listen: addresses[i], All: addresses}
		}
		s, err := Start(one)
		if err != nil {
			return nil, fmt.Errorf("server %d of %d: %w", i+1, n, err)
		}
		all = append(all, s)
	}
	return all, formed(ctx, all)
}

// ClientURLs is where clients of a cluster connect to: the addresses of all its
// servers that listen, as natslog.Connect takes them.
func ClientURLs(all []*Server) string {
	var urls []string
	for _, s := range all {
		if u := s.ClientURL(); u != "" {
			urls = append(urls, u)
		}
	}
	return strings.Join(urls, ",")
}

// freeAddresses are addresses of the loopback that were free just now.
func freeAddresses(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all, nil
}

// formed waits until a leader knows all servers, and all servers it.
func formed(ctx context.Context, all []*Server) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for len(all) > 1 {
		leaders, current := 0, 0
		for _, s := range all {
			if srv := s.now(); srv.JetStreamIsLeader() && len(srv.JetStreamClusterPeers()) == len(all) {
				leaders++
			}
			if s.now().JetStreamIsCurrent() {
				current++
			}
		}
		if leaders == 1 && current == len(all) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%d servers have formed no cluster: %w", len(all), ctx.Err())
		}
	}
	return nil
}

// apply puts the server's place in its cluster into its options.
func (p *Peers) apply(opts *server.Options) error {
	if p == nil {
		return nil
	}
	host, port, err := net.SplitHostPort(p.Listen)
	if err == nil {
		opts.Cluster.Port, err = strconv.Atoi(port)
	}
	if err != nil {
		return fmt.Errorf("address %q for the other servers: write host:port", p.Listen)
	}
	opts.Cluster.Name, opts.Cluster.Host = p.Name, host
	for _, address := range p.All {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: address})
	}
	return nil
}
