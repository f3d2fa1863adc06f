package hw_test

import (
	"fmt"
	"slices"
	"testing"

	"placer/hw"
)

func ExampleMachine_Accelerators() {
	m, err := hw.Take("p100", 2, true)
	if err != nil {
		panic(err)
	}
	for _, d := range m.Accelerators() {
		fmt.Println(m.Devices[d].Name)
	}
	fmt.Println("host:", m.Devices[m.Host()].Name)
	// Output:
	// gpu:0
	// gpu:1
	// host: cpu:0
}

// CPUs alone are accelerators and have no host; of two hosts the one with more memory counts.
func TestRoles(t *testing.T) {
	gpu, small, large := hw.Device{Kind: hw.GPU}, hw.Device{Kind: hw.CPU, Memory: 1}, hw.Device{Kind: hw.CPU, Memory: 2}
	for _, c := range []struct {
		name    string
		devices []hw.Device
		fast    []uint8
		host    int
	}{
		{"GPUs", []hw.Device{gpu, gpu}, []uint8{0, 1}, -1},
		{"CPUs", []hw.Device{small, large}, []uint8{0, 1}, -1},
		{"a CPU before GPUs", []hw.Device{small, gpu, gpu}, []uint8{1, 2}, 0},
		{"two sockets", []hw.Device{gpu, small, large, large}, []uint8{0}, 2},
	} {
		m := &hw.Machine{Devices: c.devices}
		if got := m.Accelerators(); !slices.Equal(got, c.fast) || m.Host() != c.host {
			t.Errorf("%s: accelerators %v, host %d, want %v, %d", c.name, got, m.Host(), c.fast, c.host)
		}
	}
}
