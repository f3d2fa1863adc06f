//go:build !cgo || !linux

package nvml

import "fmt"

// Monitor cannot exist in this build.
type Monitor struct{}

// Detect reports that this build cannot ask.
func Detect() (*Inventory, error) {
	return nil, fmt.Errorf("%w: this program was built without cgo, which go-nvml needs to ask NVIDIA's management library", ErrNoLibrary)
}

// Watch reports that this build cannot ask.
func Watch() (*Monitor, error) { _, err := Detect(); return nil, err }

// Read is never called.
func (*Monitor) Read(string) (State, error) { return State{}, ErrNoLibrary }

// Others is never called.
func (*Monitor) Others(string) (int, error) { return 0, ErrNoLibrary }

// Close is never called.
func (*Monitor) Close() error { return nil }
