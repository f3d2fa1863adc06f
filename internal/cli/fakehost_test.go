package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"placer/hw/gpu"
	"placer/hw/gpu/fake"
)

// lockedBuffer is written by a command that still runs.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// realClock is a console with this host's clock and, unless cfg is nil, fake GPUs.
func realClock(cfg *fake.Config) (c *console, out, log *lockedBuffer) {
	h := noHardware()
	if cfg != nil {
		h.open = func(string, string) (gpu.Driver, gpu.BLAS, error) {
			g := fake.New(*cfg)
			return g, g.BLAS(), nil
		}
	}
	out, log = &lockedBuffer{}, &lockedBuffer{}
	start := time.Now()
	return &console{in: strings.NewReader(""), out: out, err: log, clock: func() float64 { return time.Since(start).Seconds() }, cpu: func() float64 { return 0 }, hardware: h, now: time.Now}, out, log
}

// hangingGPU is the variable that makes the GPU of mainOnFake hang.
const hangingGPU = "PLACER_TEST_HANG"

// mainOnFake is Main on a host with one GPU of the fake. One that is to hang closes
// descriptor 3 in its fifth measurement, which never ends.
func mainOnFake(args []string) int {
	f := fake.Default()
	f.Devices, f.Memory = 1, 60<<30
	c, _, _ := realClock(&f)
	c.out, c.err = os.Stdout, os.Stderr
	if os.Getenv(hangingGPU) != "" {
		c.hardware.open = func(string, string) (gpu.Driver, gpu.BLAS, error) {
			g := fake.New(f)
			return &hanging{GPU: g}, g.BLAS(), nil
		}
	}
	return c.run(context.Background(), args)
}

// hanging is the fake until its fifth measurement.
type hanging struct {
	*fake.GPU
	measured int
}

// Release ends a measurement, as it begins with Retain.
func (h *hanging) Release(dev int) error {
	h.measured++
	return h.GPU.Release(dev)
}

// SyncEvent never returns in the fifth measurement.
func (h *hanging) SyncEvent(e gpu.Event) error {
	if h.measured == 4 {
		os.NewFile(3, "hung").Close()
		select {}
	}
	return h.GPU.SyncEvent(e)
}
