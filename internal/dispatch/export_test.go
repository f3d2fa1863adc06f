package dispatch

import "github.com/nats-io/nats.go"

// Connect connects to a hub without this package's protocol.
func Connect(a Address) (*nats.Conn, error) { return a.connect("placer") }
