package gpu

import "runtime"

// Locked runs f on an operating-system thread of its own, which ends with f: the
// contexts that f makes current stay its own. Handing over a call costs tens of
// microseconds, so f is a whole measurement, not an op.
func Locked(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread dies with the goroutine
		done <- f()
	}()
	return <-done
}
