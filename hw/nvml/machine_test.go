//go:build cgo && linux

package nvml

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"

	"placer/hw"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// dgx is go-nvml's DGX A100, with what its mock leaves open filled in from
// nvidia-smi's output on such a machine: 12 NVLinks a GPU to switches, pairs
// behind one PCIe switch, four GPUs a socket.
func dgx(nvlink bool) nvml.Interface {
	s := dgxa100.New()
	for i := range s.Devices {
		d := s.Devices[i].(*dgxa100.Device)
		d.GetMaxClockInfoFunc = func(c nvml.ClockType) (uint32, nvml.Return) {
			if c == nvml.CLOCK_SM {
				return 1410, nvml.SUCCESS
			}
			return 1215, nvml.SUCCESS
		}
		d.GetNumGpuCoresFunc = func() (int, nvml.Return) { return 6912, nvml.SUCCESS }
		d.GetMemoryBusWidthFunc = func() (uint32, nvml.Return) { return 5120, nvml.SUCCESS }
		d.GetMaxPcieLinkGenerationFunc = func() (int, nvml.Return) { return 4, nvml.SUCCESS }
		d.GetMaxPcieLinkWidthFunc = func() (int, nvml.Return) { return 16, nvml.SUCCESS }
		d.GetEnforcedPowerLimitFunc = func() (uint32, nvml.Return) { return 400_000, nvml.SUCCESS }
		d.GetNvLinkStateFunc = func(l int) (nvml.EnableState, nvml.Return) {
			if l < 12 && nvlink {
				return nvml.FEATURE_ENABLED, nvml.SUCCESS
			}
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
		d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) { return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS }
		d.GetP2PStatusFunc = func(nvml.Device, nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
			if nvlink {
				return nvml.P2P_STATUS_OK, nvml.SUCCESS
			}
			return nvml.P2P_STATUS_NOT_SUPPORTED, nvml.SUCCESS
		}
		d.GetTopologyCommonAncestorFunc = func(o nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
			j, _ := o.GetIndex()
			switch {
			case i/2 == j/2:
				return nvml.TOPOLOGY_MULTIPLE, nvml.SUCCESS
			case i/4 == j/4:
				return nvml.TOPOLOGY_NODE, nvml.SUCCESS
			}
			return nvml.TOPOLOGY_SYSTEM, nvml.SUCCESS
		}
	}
	return s
}

// TestGoldenDGX: the machine files of a DGX A100 with and without its NVLinks.
func TestGoldenDGX(t *testing.T) {
	for _, c := range []struct {
		file   string
		nvlink bool
	}{{"testdata/dgxa100.json", true}, {"testdata/dgxa100-pcie.json", false}} {
		inv, err := detect(bound{dgx(c.nvlink)})
		if err != nil {
			t.Fatal(err)
		}
		for i := range inv.gpus { // the mock draws them at random
			inv.gpus[i].UUID = ""
		}
		m, err := inv.Machine("dgx", Host{Cores: 128, Memory: 1 << 40, Arch: "avx2"})
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := m.Write(&got); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(c.file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs; run with -update and read the diff", c.file)
		}
		read, err := hw.Read(&got)
		if err != nil || read.Hash() != m.Hash() {
			t.Errorf("%s does not read back as it was: %v", c.file, err)
		}
	}
}

// TestFiguresOfDGX compares with the built-in A100 and with the topology.
func TestFiguresOfDGX(t *testing.T) {
	inv, err := detect(bound{dgx(true)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := inv.Machine("dgx", Host{})
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := hw.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	got, want := &m.Devices[0], &sheet.Devices[0]
	if got.SMs != want.SMs || got.Arch != want.Arch {
		t.Errorf("%d SMs of %s, want %d of %s", got.SMs, got.Arch, want.SMs, want.Arch)
	}
	for k, w := range want.Peak {
		if r := float64(got.Peak[k] / w); r < 0.98 || r > 1.02 {
			t.Errorf("peak %s %v, the data sheet has %v", k, got.Peak[k], w)
		}
	}
	if b := float64(got.MemoryBandwidth); b < 1.5e12 || b > 1.6e12 { // the 40 GB model: 1555 GB/s
		t.Errorf("memory bandwidth %v", got.MemoryBandwidth)
	}
	if l, b := m.Transfer(0, 7); l != 12e-6 || b != 270e9 {
		t.Errorf("gpu:0 to gpu:7 over NVLink: %v and %v", l, b)
	}
	inv, err = detect(bound{dgx(false)})
	if err != nil {
		t.Fatal(err)
	}
	if m, err = inv.Machine("dgx", Host{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ to, hops int }{{1, 2}, {3, 4}, {7, 5}} {
		if r := m.Route(0, c.to); len(r) != c.hops {
			t.Errorf("gpu:0 to gpu:%d without NVLink takes %d links, want %d", c.to, len(r), c.hops)
		}
	}
}

// TestOldLibrary: functions that the library lacks are not called.
func TestOldLibrary(t *testing.T) {
	s := dgx(true).(*dgxa100.Server)
	s.LookupSymbolFunc = func(string) error { return errors.New("not there") }
	for i := range s.Devices {
		d := s.Devices[i].(*dgxa100.Device)
		d.GetNumGpuCoresFunc = func() (int, nvml.Return) { panic("called") }
		d.GetMemoryBusWidthFunc = func() (uint32, nvml.Return) { panic("called") }
	}
	inv, err := detect(bound{s})
	if err != nil {
		t.Fatal(err)
	}
	if len(inv.gpus[0].Missing) != 2 {
		t.Errorf("missing: %v", inv.gpus[0].Missing)
	}
	if _, err := inv.Machine("old", Host{}); err != nil {
		t.Error(err)
	}
}

// TestNoLibrary: errors of the library that mean that there is no GPU.
func TestNoLibrary(t *testing.T) {
	for _, r := range []nvml.Return{nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED} {
		s := dgxa100.New()
		s.InitFunc = func() nvml.Return { return r }
		if _, err := detect(bound{s}); !errors.Is(err, ErrNoLibrary) {
			t.Errorf("%v: error %v", r, err)
		}
	}
}

// TestMonitor reads a state.
func TestMonitor(t *testing.T) {
	s := dgxa100.New()
	d := s.Devices[3].(*dgxa100.Device)
	d.GetClockInfoFunc = func(c nvml.ClockType) (uint32, nvml.Return) { return 1000 + uint32(c), nvml.SUCCESS }
	d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 250_000, nvml.SUCCESS }
	d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: 97}, nvml.SUCCESS }
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 4, nvml.SUCCESS }
	d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 8, nvml.SUCCESS }
	there := map[string]bool{"nvmlDeviceGetCurrentClocksEventReasons": true, "nvmlDeviceGetCurrentClocksThrottleReasons": true}
	s.LookupSymbolFunc = func(name string) error {
		if !there[name] {
			return errors.New("not there")
		}
		return nil
	}
	d.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) { return make([]nvml.ProcessInfo, 2), nvml.SUCCESS }
	m, err := watch(bound{s})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Read(d.UUID)
	if want := (State{SMClock: 1001, MemoryClock: 1002, Power: 250, Utilisation: 97, Throttle: 4}); err != nil || got != want || got.Throttle&Spoiled == 0 {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	// By the older name where the library is older, not at all where it has neither.
	for _, want := range []uint64{8, 0} {
		delete(there, map[uint64]string{8: "nvmlDeviceGetCurrentClocksEventReasons", 0: "nvmlDeviceGetCurrentClocksThrottleReasons"}[want])
		if got, err := m.Read(d.UUID); err != nil || got.Throttle != want {
			t.Errorf("reasons %d (%v), want %d", got.Throttle, err, want)
		}
	}
	if n, err := m.Others(d.UUID); err != nil || n != 2 {
		t.Errorf("%d processes (%v)", n, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
