package check_test

import (
	"slices"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/check"
)

// "cpu" is the host: of two sockets the one with more memory.
func TestCPUOfTwo(t *testing.T) {
	b := graph.NewBuilder("net")
	for _, name := range []string{"a", "b"} {
		b.Op(graph.Op{Name: name, Module: name, Kind: "Relu", Forward: graph.None}, nil)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := &hw.Machine{Devices: []hw.Device{{Name: "cpu:0", Kind: hw.CPU, Memory: 1}, {Name: "cpu:1", Kind: hw.CPU, Memory: 2}, {Name: "gpu:0", Kind: hw.GPU}}}
	p := check.FromMap([]check.Entry{{Prefix: "a", Device: "cpu"}, {Prefix: "b", Device: "0"}}, g, m)
	if want := []uint8{1, 2}; !slices.Equal(p.Device, want) {
		t.Errorf("on %v, want %v", p.Device, want)
	}
}
