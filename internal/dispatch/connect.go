package dispatch

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
)

// ErrUnreachable says that there is no hub at an address: it may come yet.
var ErrUnreachable = errors.New("nobody answers")

// Address says where a hub is and who one is there.
type Address struct {
	URL  string // as nats://host:4222
	Keys string // folder of keys; empty for a hub without
	Hub  *Hub   // an embedded hub of this process, in place of URL
}

// Check reports a URL that can never lead to a hub, whatever is started there later.
func (a Address) Check() error {
	if a.Hub != nil {
		return nil
	}
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return fmt.Errorf("%q is no address of a hub, want nats://HOST:PORT", a.name())
	case !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme):
		return fmt.Errorf("%q: a hub's address begins with nats://, not %s://", a.name(), u.Scheme)
	case u.Port() != "":
		if _, err := strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return fmt.Errorf("%q: port %s, want at most 65535", a.name(), u.Port())
		}
	}
	return nil
}

// connect connects and stays connected: after a loss it tries again for ever, unless the hub
// has refused it twice, after which the connection is closed. more are options beside its own.
func (a Address) connect(name string, more ...nats.Option) (*nats.Conn, error) {
	options := append([]nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(signOfLife / 10), nats.Timeout(dialTimeout),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // else they go to stderr
	}, more...)
	keys := a.Keys
	if a.Hub != nil {
		keys = a.Hub.keys
		options = append(options, nats.InProcessServer(a.Hub.server))
	}
	if keys != "" {
		id, err := readIdentity(keys)
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Nkey(id.public, id.user.Sign))
		if a.Hub == nil { // within a process there is nothing to encrypt
			options = append(options, nats.Secure(id.tls()))
		}
	}
	at := a.URL
	if a.Hub != nil {
		at = ""
	}
	nc, err := nats.Connect(at, options...)
	if err != nil {
		return nil, a.refusal(err)
	}
	return nc, nil
}

// refusal says why there is no connection to the hub.
func (a Address) refusal(err error) error {
	var dial *net.OpError
	switch {
	case errors.Is(err, nats.ErrAuthorization) && a.Keys == "":
		return fmt.Errorf("hub %s wants a key", a.name())
	case errors.Is(err, nats.ErrAuthorization):
		return fmt.Errorf("hub %s does not know the key in %s", a.name(), a.Keys)
	case errors.As(err, &dial), errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("hub %s: %w (%w)", a.name(), ErrUnreachable, err)
	}
	// A URL that is none comes back within the error.
	return fmt.Errorf("hub %s: %s", a.name(), withoutPassword(err.Error()))
}

var credentials = regexp.MustCompile(`://[^\s"]*@`)

// withoutPassword returns text with the name and the password of a URL left out.
func withoutPassword(text string) string { return credentials.ReplaceAllString(text, "://***@") }

func (a Address) name() string {
	if a.Hub != nil {
		return a.Hub.URL()
	}
	return withoutPassword(a.URL)
}
