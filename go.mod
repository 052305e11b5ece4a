module github.com/reprise-dev/reprise

go 1.26.0

require (
	github.com/cenkalti/backoff/v5 v5.0.3
	github.com/google/jsonschema-go v0.4.3
	github.com/vmihailenco/msgpack/v5 v5.4.1
)

require (
	github.com/stretchr/testify v1.12.1 // indirect
	github.com/vmihailenco/tagparser/v2 v2.0.0 // indirect
)
