package dispatch

import (
	"strings"
	"testing"
)

// TestPasswordIsNotEchoed: no error of a hub's URL holds its password.
func TestPasswordIsNotEchoed(t *testing.T) {
	for _, url := range []string{"nats://me:secret@127.0.0.1:1", "nats://me:secret@127.0.0.1:x", "nats://me:sec@ret/secret@:99999999", "tls://secret@127.0.0.1:1"} {
		_, err := Address{URL: url}.connect("test")
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "://***@") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
