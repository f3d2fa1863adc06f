package hw

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cores is a machine whose copies occupy the sender; the error cases change one
// place of it.
const cores = `{
  "format": "placer machine 1",
  "name": "cores",
  "models": {
    "core": {"kind": "cpu", "capacity": "4 GB", "memory_bandwidth": "30 GB/s", "shared_memory_bandwidth": "20 GB/s",
             "peak": {"f32": "90 GFLOP/s"}, "launch": "3 us", "sms": 1, "source": "test"}
  },
  "devices": [{"name": "cpu:[0-2]", "model": "core"}],
  "cables": [{"ends": ["cpu:[0-2]", "cpu:[0-2]"], "bandwidth": "12 GB/s", "latency": "2 us", "source": "test",
              "occupies": "sender", "delivery": "1.3 us", "receive": "1.5 us", "receive_bandwidth": "43 GB/s"}]
}
`

func TestEndCosts(t *testing.T) {
	m, err := Read(strings.NewReader(cores))
	if err != nil {
		t.Fatal(err)
	}
	want := EndCosts{Sender, 1.3e-6, 1.5e-6, 43e9}
	if got := m.EndCosts(2, 1); got != want || !m.OccupiesSender() || m.Devices[0].SharedMemoryBandwidth != 20e9 {
		t.Errorf("%+v, occupies the sender %v, %v shared", got, m.OccupiesSender(), m.Devices[0].SharedMemoryBandwidth)
	}
	two := Machine{Devices: make([]Device, 2), Links: []Link{{EndCosts: want}, {EndCosts: EndCosts{Sender, 1e-6, 0, 9e9}}}, Routes: [][]int32{nil, {0, 1}, {1, 0}, nil}}
	if got := two.EndCosts(0, 1); got != (EndCosts{Sender, want.Delivery + 1e-6, want.Receive, 9e9}) {
		t.Errorf("over two links %+v", got)
	}
	var file bytes.Buffer
	if err := m.Write(&file); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" || again.Hash() != m.Hash() {
		t.Errorf("written and read again:\n%s", diff)
	}
	part, err := m.Take(0, true)
	if err != nil || !part.OccupiesSender() {
		t.Errorf("a part of it: %v, occupies the sender %v", err, part.OccupiesSender())
	}
}

// p100Hash is the hash of p100 from before there were end costs.
const p100Hash = "5d4f31ee7ac38decbd952cab2316011246d4101c4ff751b4d5eae5c7bf87ee97"

// Every key changes the hash, and a machine without them has the hash it had.
func TestEndCostsAreHashed(t *testing.T) {
	seen := map[string]string{}
	for _, change := range []string{"", `, "shared_memory_bandwidth": "20 GB/s"`, `, "delivery": "1.3 us"`, `, "receive": "1.5 us"`, `, "receive_bandwidth": "43 GB/s"`} {
		if !strings.Contains(cores, change) {
			t.Fatalf("no %q", change)
		}
		m, err := Read(strings.NewReader(strings.Replace(cores, change, "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[m.Hash()]; ok {
			t.Errorf("without %q the hash is that without %q", change, other)
		}
		seen[m.Hash()] = change
	}
	m, err := Load("p100")
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Hash(); got != p100Hash {
		t.Errorf("p100 has the hash %s, before the keys were there %s", got, p100Hash)
	}
}

func TestEndCostErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"occupies": "sender"`, `"occupies": "receiver"`, `cables[0].occupies: is "receiver", want "sender"`},
		{`"occupies": "sender"`, `"occupies": ""`, `cables[0].occupies: is "", want "sender"`},
		{`"occupies": "sender", `, ``, "cables[0]: delivery, receive and receive_bandwidth mean nothing without occupies"},
		{`"1.3 us"`, `"0 us"`, "cables[0].delivery: is the string"},
		{`"1.3 us"`, `"-1 us"`, "cables[0].delivery: is the string"},
		{`"1.3 us"`, `"1e308 s"`, "delivery is "},
		{`"1.3 us"`, `"1e-300 s"`, "delivery is "},
		{`"1.5 us"`, `"0 us"`, "cables[0].receive: is the string"},
		{`"1.5 us"`, `"1001 s"`, "receive is "},
		{`"43 GB/s"`, `"1e-300 B/s"`, "receive_bandwidth is "},
		{`"43 GB/s"`, `"0 GB/s"`, "cables[0].receive_bandwidth: is the string"},
		{`"43 GB/s"`, `"43 GB"`, "cables[0].receive_bandwidth"},
		{`"12 GB/s"`, `"1e-300 B/s"`, "bandwidth is "},
		{`"2 us"`, `"1e308 s"`, "latency is "},
		{`"20 GB/s"`, `"-20 GB/s"`, "models.core.shared_memory_bandwidth: is the string"},
		{`"20 GB/s"`, `"1e-300 B/s"`, "shared_memory_bandwidth is "},
		{`"20 GB/s"`, `"1e300 B/s"`, "shared_memory_bandwidth is "},
		{`"cables"`, `"links": [{"name": "x", "bandwidth": "1 GB/s", "latency": "1 us", "source": ""}], "cables"`, "want all links alike"},
	} {
		if !strings.Contains(cores, c.old) {
			t.Fatalf("no %q", c.old)
		}
		_, err := Read(strings.NewReader(strings.Replace(cores, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q in it", c.new, err, c.want)
		}
	}
}
