package nvml

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"placer/internal/dynlib"
)

// loaded is the library as the system's loader finds it, called without cgo.
type loaded struct {
	files  []string // the first that is there
	handle uintptr
}

// newLoaded returns this host's library.
func newLoaded() *loaded { return &loaded{files: places()} }

// call calls a function with words, some of which are addresses of Go variables.
//
//go:uintptrescapes
func (l *loaded) call(name string, a ...uintptr) error {
	fn, err := dynlib.LookUp(l.handle, name)
	if err != nil {
		return errMissing
	}
	if r := code(dynlib.Call(fn, a...)); r != success {
		return r
	}
	return nil
}

func (l *loaded) start() error {
	h, err := dynlib.Open(l.files...)
	switch {
	case err == nil:
	case dynlib.Absent(err):
		return starting(libraryNotFound)
	default:
		return fmt.Errorf("%w: NVIDIA's management library: %w", ErrNoLibrary, err)
	}
	l.handle = h
	err = l.call("nvmlInit_v2")
	if c := success; errors.As(err, &c) {
		return starting(c)
	}
	return err
}

func (l *loaded) stop() error { return l.call("nvmlShutdown") }

func (l *loaded) driver() (string, error) {
	var b [80]byte // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
	err := l.call("nvmlSystemGetDriverVersion", uintptr(unsafe.Pointer(&b)), uintptr(len(b)))
	return text(b[:]), err
}

func (l *loaded) cuda() (int, error) {
	var v int32
	err := l.call("nvmlSystemGetCudaDriverVersion", uintptr(unsafe.Pointer(&v)))
	return int(v), err
}

func (l *loaded) count() (int, error) {
	var n uint32
	err := l.call("nvmlDeviceGetCount_v2", uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

func (l *loaded) device(i int) (device, error) {
	d := loadedDevice{l: l}
	err := l.call("nvmlDeviceGetHandleByIndex_v2", uintptr(i), uintptr(unsafe.Pointer(&d.at)))
	return d, err
}

func (l *loaded) deviceOf(uuid string) (device, error) {
	d, b := loadedDevice{l: l}, append([]byte(uuid), 0)
	err := l.call("nvmlDeviceGetHandleByUUID", uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&d.at)))
	return d, err
}

// text returns the zero-terminated string in b.
func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}
