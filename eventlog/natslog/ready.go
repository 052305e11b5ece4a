package natslog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/reprise-dev/reprise/eventlog"
	"github.com/reprise-dev/reprise/messages"
)

// oldestMajor and oldestMinor are the first version of the server that has all that is used here.
const oldestMajor, oldestMinor = 2, 12

// checkVersion refuses a server that is too old.
func checkVersion(nc *nats.Conn) error {
	if version := nc.ConnectedServerVersion(); tooOld(version) {
		return fmt.Errorf("the NATS server %s at %s has version %s, and reprise needs %d.%d or later: upgrade the servers, or name others",
			nc.ConnectedServerName(), messages.Redacted(nc.ConnectedUrl()), version, oldestMajor, oldestMinor)
	}
	return nil
}

// tooOld judges a version; one that cannot be read is taken.
func tooOld(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d.", &major, &minor); err != nil {
		return false
	}
	return major < oldestMajor || major == oldestMajor && minor < oldestMinor
}

const (
	// settleTime is how long a cluster may take to elect its leaders, and to learn
	// of all its servers, before Open gives up.
	settleTime = 30 * time.Second
	// enableTime is how long JetStream may give no answer at all.
	enableTime = time.Second
)

// Await calls do until its error is none that may be over soon, such as that servers
// start, elect a leader, or are slow to answer: for half a minute, or until ctx ends.
// What a failed call has begun it must have undone. A nil logger is not allowed.
func Await(ctx context.Context, nc *nats.Conn, log *slog.Logger, do func(context.Context) error) error {
	return settled(ctx, nc, 0, log, do)
}

// settled calls do until its error is none that may be over soon. What is to be done
// about the last one is in it.
func settled(ctx context.Context, nc *nats.Conn, replicas int, log *slog.Logger, do func(context.Context) error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 50*time.Millisecond, time.Second
	begun, told := time.Now(), false
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := do(open{ctx})
		if err == nil || !passing(err) || silent(err) && denied(nc) != nil || disabled(err) && time.Since(begun) > enableTime {
			return struct{}{}, permanent(err)
		}
		if !told && time.Since(begun) > time.Second {
			told = true
			log.Info("waiting for NATS: its servers start, elect a leader, or are to be reached again", "error", err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(settleTime))
	return explained(err, nc, replicas)
}

// open is a context that hides its deadline, and ends when it has come: only without one
// the library bounds each request, to five seconds, and a request that is lost with the
// connection is never answered.
type open struct{ context.Context }

// Deadline reports none.
func (open) Deadline() (time.Time, bool) { return time.Time{}, false }

func permanent(err error) error {
	if err == nil {
		return nil
	}
	return backoff.Permanent(err)
}

// codes of the server that say what it has, or has not yet.
const (
	codeUnavailable jetstream.ErrorCode = 10008
	codeNoPeers     jetstream.ErrorCode = 10005
	codeResources   jetstream.ErrorCode = 10023
	codeAlone       jetstream.ErrorCode = 10074
)

// passing reports whether an error may be over soon; of errors that were joined, all.
func passing(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !passing(e) })
	}
	return silent(err) || is(err, codeUnavailable, codeNoPeers, codeResources)
}

// forNow is err, as eventlog.ErrUnavailable if it may be over soon.
func forNow(err error) error {
	if !passing(err) || errors.Is(err, eventlog.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
}

// disabled reports whether JetStream does not answer, or says that it is off.
func disabled(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount)
}

func is(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}

// silent reports whether no answer came: as when the request was not permitted, or the
// connection was not there when it began (it is set to hold nothing then) or broke.
func silent(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, eventlog.ErrUnavailable) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrDisconnected) || disabled(err)
}

// denied is the server's word that this user may not do something; nil: it has
// permitted all. It is the newest error of the connection, and may be an old one: it
// explains why there was no answer, but says nothing of an answer that came.
func denied(nc *nats.Conn) error {
	if err := nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) {
		return err
	}
	return nil
}

// explained adds to an error of opening what to do about it.
func explained(err error, nc *nats.Conn, replicas int) error {
	server := messages.Redacted(nc.ConnectedUrl())
	no := denied(nc)
	switch {
	case err == nil:
		return nil
	case no != nil && silent(err):
		return fmt.Errorf("the NATS server at %s does not permit this user what a node needs: %w: give it the permissions of a node", server, no)
	case passing(err) && !nc.IsConnected():
		return fmt.Errorf("the connection to NATS broke and does not come back: %w", errors.Join(nc.LastError(), err))
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("JetStream is off for this user's account at %s: put jetstream: enabled into the account, or log in to another: %w", server, err)
	case disabled(err):
		return fmt.Errorf("JetStream is off at %s: put a jetstream block into the server's configuration, or name another server: %w", server, err)
	case is(err, codeAlone):
		return fmt.Errorf("%d copies were asked for, and the NATS server at %s stands alone: ask for 1, or name a cluster of %d servers: %w", replicas, server, replicas, err)
	case is(err, codeNoPeers, codeResources):
		return fmt.Errorf("%d copies need as many servers with JetStream and room, and the cluster at %s has fewer now: see `nats server list`: %w", replicas, server, err)
	case passing(err):
		return fmt.Errorf("JetStream at %s has no leader, or does not answer: see that most servers of the cluster run: %w", server, err)
	}
	return err
}
