package bench

import (
	"placer/hw/nvml"
	"placer/units"
)

// Format names the version of Result as a JSON document.
const Format = "placer hardware 1"

// Result is what was measured on a host.
type Result struct {
	Format  string   `json:"format"`
	Date    string   `json:"date"` // RFC 3339, filled by the caller
	Driver  string   `json:"driver,omitempty"`
	CUDA    int      `json:"cuda"`   // version of the driver
	BLAS    int      `json:"cublas"` // version
	Devices []device `json:"devices"`
	Links   []link   `json:"links"` // between GPUs, each direction
	Fits    []fit    `json:"calibration,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// device is one GPU.
type device struct {
	Ordinal   int         `json:"ordinal"`
	Name      string      `json:"name"`
	UUID      string      `json:"uuid"`
	PCI       string      `json:"pci"`
	Major     int         `json:"major"`
	Minor     int         `json:"minor"`
	SMs       int         `json:"sms"`
	ClockMHz  int         `json:"clock_mhz"`
	MemoryMHz int         `json:"memory_clock_mhz"`
	BusWidth  int         `json:"bus_width_bits"`
	L2        units.Bytes `json:"l2"`
	Memory    units.Bytes `json:"memory"`
	// Context is what the driver's context and cuBLAS take of it.
	Context units.Bytes `json:"context"`

	Products []Product `json:"products"`
	Streams  []point   `json:"streams"`          // kernels that read and write; bytes count both
	Reads    []point   `json:"reads,omitempty"`  // kernels that read alone
	Worked   []point   `json:"worked,omitempty"` // as streams, with 16 operations for each 16 bytes read
	// Copy is the bandwidth of the largest copy within the device, reads and writes
	// counted.
	Copy       units.BytesPerSecond `json:"copy"`
	CopyPoints []point              `json:"copies"`      // within the device; bytes moved
	Launch     stat                 `json:"launch"`      // a kernel among many
	Round      stat                 `json:"round"`       // a kernel and the wait for it
	Node       stat                 `json:"node"`        // a kernel within a graph
	ToDevice   []point              `json:"to_device"`   // from pinned memory
	FromDevice []point              `json:"from_device"` // to pinned memory
	HostToGPU  Line                 `json:"to_device_line"`
	GPUToHost  Line                 `json:"from_device_line"`
	Copies     Line                 `json:"copies_line"`
	// States were read while the device worked.
	States []sampled `json:"states,omitempty"`
}

// sampled is how the device fared during a part of the benchmark.
type sampled struct {
	During string `json:"during"`
	nvml.State
}

// Product is one matrix product; the time is that of the kernel alone.
type Product struct {
	Type  string  `json:"type"`
	Batch int     `json:"batch"`
	M     int     `json:"m"`
	N     int     `json:"n"`
	K     int     `json:"k"`
	Rate  float64 `json:"flops_per_s"`
	stat
}

// link is one direction between two GPUs.
type link struct {
	From   int     `json:"from"`
	To     int     `json:"to"`
	Direct bool    `json:"direct"` // false: the driver goes through the host
	Points []point `json:"points"`
	Line
}

// Best returns the highest rate of products of a type, in operations a second; 0
// where none ran.
func (d *device) Best(t string) (best float64) {
	for _, p := range d.Products {
		if p.Type == t {
			best = max(best, p.Rate)
		}
	}
	return best
}

// Throttled lists the parts during which a clock was held down.
func (d *device) Throttled() (during []string) {
	for _, s := range d.States {
		if s.Throttle&nvml.Spoiled != 0 {
			during = append(during, s.During)
		}
	}
	return during
}
