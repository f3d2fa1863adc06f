//go:build long

package exact

import "testing"

// TestEveryPairLong takes some minutes.
func TestEveryPairLong(t *testing.T) { pairs(t, 400, 6) }
