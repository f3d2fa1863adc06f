package dispatch_test

import (
	"testing"

	"placer/internal/dispatch"
)

// TestAddressCheck: what can never lead to a hub is an error before anything is tried.
func TestAddressCheck(t *testing.T) {
	for url, good := range map[string]bool{
		"nats://hub.example.org:4222": true, "tls://10.0.0.1:4222": true, "nats://name:word@hub": true,
		"foo": false, "foo:4222": false, "nats://": false, "nats://:4222": false, "http://hub:4222": false, "nats://a b": false,
	} {
		if err := (dispatch.Address{URL: url}).Check(); (err == nil) != good {
			t.Errorf("%q: error %v, want one %t", url, err, !good)
		}
	}
}
