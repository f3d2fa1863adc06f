package dispatch

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// HubConfig describes an embedded hub.
type HubConfig struct {
	// Listen is the address workers connect to, host:port (port 0: any free one);
	// empty for a hub that only this process reaches.
	Listen string
	// Keys is the hub's folder of keys. Without it the hub knows neither keys nor
	// encryption and may listen on this host alone.
	Keys string
	// Now is the time, by which keys that have expired are refused: workers would refuse them,
	// and the hub wait for these in vain. Zero asks nothing.
	Now time.Time
	// Store is the folder of what the hub keeps.
	Store string
	// MaxStore bounds what the hub keeps on disk, in bytes; 0 for the default.
	MaxStore int64
	// MaxPayload bounds a message, in bytes; 0 for the default.
	MaxPayload int32
}

// Hub is an embedded NATS server.
type Hub struct {
	server *server.Server
	keys   string
}

// StartHub starts a hub.
func StartHub(c HubConfig) (*Hub, error) {
	o := &server.Options{
		ServerName: "placer-hub", JetStream: true, StoreDir: c.Store, NoSigs: true, NoLog: true, DontListen: c.Listen == "",
		MaxPayload: cmp.Or(c.MaxPayload, maxPayload), JetStreamMaxStore: cmp.Or(c.MaxStore, 4<<30), JetStreamMaxMemory: 1 << 30,
	}
	if c.Listen != "" {
		host, port, err := net.SplitHostPort(c.Listen)
		if err != nil {
			return nil, fmt.Errorf("hub: address %q: %w", c.Listen, err)
		}
		if o.Port, err = strconv.Atoi(port); err != nil || o.Port < 0 || o.Port > 65535 {
			return nil, fmt.Errorf("hub: address %q: want host:port", c.Listen)
		}
		if o.Host = host; o.Port == 0 {
			o.Port = server.RANDOM_PORT
		}
		if ip := net.ParseIP(host); c.Keys == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("hub: %s can be reached from other hosts: keys are needed, make them with 'placer worker keys'", c.Listen)
		}
	}
	if c.Keys != "" {
		if err := secure(o, c.Keys, c.Now); err != nil {
			return nil, err
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	if c.Listen != "" { // the server would end the program at an address that is taken
		l, err := net.Listen("tcp", net.JoinHostPort(o.Host, strconv.Itoa(max(o.Port, 0))))
		if err != nil {
			return nil, fmt.Errorf("hub: %w", err)
		}
		l.Close()
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, fmt.Errorf("hub: not ready after 10 s; is %s writable?", c.Store)
	}
	return &Hub{server: s, keys: c.Keys}, nil
}

// secure makes the hub speak TLS and let in only those it knows.
func secure(o *server.Options, keys string, now time.Time) error {
	cert, err := tls.LoadX509KeyPair(filepath.Join(keys, certFile), filepath.Join(keys, certKeyFile))
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	if end := cert.Leaf.NotAfter; now.After(end) {
		return fmt.Errorf("keys: %s expired on %s: make new ones with 'placer worker keys'", filepath.Join(keys, certFile), end.UTC().Format(time.DateTime+" MST"))
	}
	path := filepath.Join(keys, usersFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	var u users
	if err := json.Unmarshal(data, &u); err != nil {
		return fmt.Errorf("keys: %s: %w", path, err)
	}
	if u.Controller == "" {
		return fmt.Errorf("keys: %s: %w", path, errors.New("no controller"))
	}
	o.Nkeys = u.nkeyUsers()
	o.TLS, o.TLSTimeout = true, dialTimeout.Seconds()
	o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	return nil
}

// URL returns where workers find the hub.
func (h *Hub) URL() string { return h.server.ClientURL() }

// Close stops the hub.
func (h *Hub) Close() {
	h.server.Shutdown()
	h.server.WaitForShutdown()
}
