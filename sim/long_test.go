//go:build long

package sim

import (
	"testing"

	"placer/hw"
)

func TestEvaluateAgreesWithOracleLong(t *testing.T) {
	t.Parallel()
	for seed := uint64(1 << 20); seed < 1<<20+30_000; seed++ {
		maxDevices := 5
		if seed%20 == 0 {
			maxDevices = hw.MaxPlaced
		}
		agree(t, seed, 60, maxDevices)
	}
}

func TestFusedAgainstOracleLong(t *testing.T) {
	t.Parallel()
	for seed := uint64(1 << 20); seed < 1<<20+30_000; seed++ {
		agreeFused(t, seed, seed%2 == 0)
	}
}

func TestMovesAgreeLong(t *testing.T) {
	t.Parallel()
	var c movesTold
	for seed := uint64(1 << 20); seed < 1<<20+9_500; seed++ {
		c.agreeMoves(t, seed, 10)
	}
	for name, gpus := range map[string]int{"gnmt8": 8, "rnnlm8": 8, "wavenet4": 4, "inception": 2, "amoebanet": 4} {
		agreeOnWorkload(t, name, gpus, 1000, false)
		agreeOnWorkload(t, name, gpus, 1000, true)
	}
}
