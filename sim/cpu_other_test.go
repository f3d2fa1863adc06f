//go:build !linux

package sim_test

import "time"

var started = time.Now()

// cpuTime falls back on the wall clock.
func cpuTime() time.Duration { return time.Since(started) }
