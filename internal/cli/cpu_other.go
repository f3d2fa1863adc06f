//go:build !unix

package cli

import "time"

var programStart = time.Now()

// processSeconds returns the time since the start, where the system does not say
// how much of it the program has used.
func processSeconds() float64 { return time.Since(programStart).Seconds() }
