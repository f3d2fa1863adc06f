package measure

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/hw"
	"placer/hw/nvml"
	"placer/internal/faults"
	"placer/internal/words"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Host stands in Problem.GPU for the host's processor.
const Host = -1

// Problem is a step to be measured.
type Problem struct {
	Graph   *graph.Graph
	Machine *hw.Machine
	Plan    *plan.Plan
	// Predicted is the simulator's result for Plan, with its trace: it gives the
	// kernels, the order on every device and the lifetimes of tensors.
	Predicted *sim.Result
	// GPU is the ordinal of the GPU that each device stands on, [D], or Host.
	GPU []int
}

// Mode says how a step is issued.
type Mode uint8

// Modes.
const (
	Eager    Mode = iota // every call by the host, as a framework dispatches
	Captured             // as one graph: the device's time alone
)

func (m Mode) String() string { return [...]string{"eager", "graph"}[m] }

// Config says how a step is measured.
type Config struct {
	Mode    Mode
	Repeats int // timed steps, of which the median counts; the first is dropped
	// tf32 lets f32 products run in tf32, as roofline.Config does.
	tf32 bool
	// Partition gives devices on one GPU multiprocessors of their own.
	Partition bool
	// reserve is left free on every GPU.
	reserve units.Bytes
	// Trace runs one more step with events around every op and transfer.
	Trace bool
	// Clock is the host's, in seconds.
	Clock func() float64
	// Warm, if not nil, keeps contexts and kernels for the runs that follow.
	Warm *Warm
	// State, if not nil, tells how the GPU of a UUID fares.
	State func(uuid string) (nvml.State, error)
}

// Default is ten eager steps and a traced one.
func Default() Config {
	return Config{Repeats: 10, tf32: true, reserve: 256 << 20, Trace: true}
}

// Validate reports every fault of c.
func (c *Config) Validate() error {
	var errs faults.List
	errs.If(c.Mode > Captured, "mode %d does not exist", c.Mode)
	errs.If(c.Repeats < 1, "%d repeats, want at least 1", c.Repeats)
	errs.If(c.reserve < 0, "reserve %v is negative", c.reserve)
	errs.If(c.Clock == nil, "no clock")
	return errors.Join(errs...)
}

// check reports what cannot be measured.
func (p *Problem) check(cfg *Config, gpus int) error {
	if err := p.Plan.Check(p.Graph, p.Machine); err != nil {
		return err
	}
	if p.Predicted == nil || p.Predicted.Trace == nil {
		return errors.New("there is no simulated trace of the plan to take the order from")
	}
	if err := checkKernels(p); err != nil {
		return err
	}
	if len(p.GPU) != p.Machine.NumDevices() {
		return fmt.Errorf("%s named for %s", words.Count(len(p.GPU), "GPU", "GPUs"), words.Count(p.Machine.NumDevices(), "device", "devices"))
	}
	used := make([]bool, len(p.GPU))
	for _, d := range p.Plan.Device {
		used[d] = true
	}
	for d, x := range p.GPU {
		if x < Host || x >= gpus {
			return fmt.Errorf("device %s on GPU %d: there are %d", p.Machine.Devices[d].Name, x, gpus)
		}
		if x == Host && used[d] && cfg.Mode == Captured {
			return fmt.Errorf("ops on %s, which a graph cannot hold: measure it eagerly", p.Machine.Devices[d].Name)
		}
	}
	return nil
}

// Spread stands the devices of m on gpus GPUs: each on one of its own, the CPU on
// the host; or, if logical, all GPUs of m on the first one.
func Spread(m *hw.Machine, gpus int, logical bool) ([]int, error) {
	out := make([]int, m.NumDevices())
	next := 0
	for i := range m.Devices {
		switch {
		case m.Devices[i].Kind == hw.CPU:
			out[i] = Host
		case logical:
			out[i] = 0
		case next < gpus:
			out[i] = next
			next++
		default:
			return nil, fmt.Errorf("machine %s has more GPUs than the %d here: --logical puts them on one", m.Name, gpus)
		}
	}
	return out, nil
}

// Logical returns a machine of k devices like d, each with a k-th of its memory,
// and with sms multiprocessors of its own if that is not zero, joined pair by pair
// by links of the given figures.
func Logical(d *hw.Device, k, sms int, bandwidth units.BytesPerSecond, latency units.Seconds) (*hw.Machine, error) {
	m := &hw.Machine{Name: fmt.Sprintf("%s in %d", d.Model, k), Note: "Several devices on one GPU.", Routes: make([][]int32, k*k)}
	for i := range k {
		x := *d
		x.Name, x.Capacity, x.Memory = fmt.Sprintf("gpu:%d", i), d.Capacity/units.Bytes(k), d.Memory/units.Bytes(k)
		if sms > 0 && sms < d.SMs {
			x.Model += fmt.Sprintf(" (%d SMs)", sms)
			share := float64(sms) / float64(d.SMs)
			x.SMs, x.Peak = sms, map[string]units.FLOPsPerSecond{}
			for t, f := range d.Peak {
				x.Peak[t] = f * units.FLOPsPerSecond(share)
			}
		}
		m.Devices = append(m.Devices, x)
		for j := range k {
			if i != j {
				m.Routes[i*k+j] = []int32{int32(len(m.Links))}
				m.Links = append(m.Links, hw.Link{Name: fmt.Sprintf("gpu:%d>gpu:%d", i, j), Bandwidth: bandwidth, Latency: latency, Source: "chosen: a copy held back"})
			}
		}
	}
	return m, m.Check()
}

// OutOfMemory says that a plan does not fit what is there.
type OutOfMemory struct {
	device     string
	Need, Have units.Bytes
}

func (e *OutOfMemory) Error() string {
	return fmt.Sprintf("infeasible: %s needs %v, it has %v", e.device, e.Need, e.Have)
}
