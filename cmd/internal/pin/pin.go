// Package pin keeps go.mod whole while rooms are being built; it goes away.
package pin

import (
	_ "github.com/agnivade/levenshtein"
	_ "github.com/asynkron/protoactor-go/actor"
	_ "github.com/asynkron/protoactor-go/cluster"
	_ "github.com/asynkron/protoactor-go/remote"
	_ "github.com/goccy/go-yaml"
	_ "github.com/gofrs/flock"
	_ "github.com/nats-io/nats-server/v2/server"
	_ "github.com/nats-io/nats.go"
	_ "github.com/nats-io/nats.go/jetstream"
	_ "github.com/nats-io/nats.go/micro"
	_ "github.com/oklog/ulid/v2"
	_ "github.com/peterh/liner"
	_ "github.com/sashabaranov/go-openai"
	_ "github.com/spf13/cobra"
)
