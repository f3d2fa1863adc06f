package strategies

import (
	"math"
	"testing"

	"placer/graph/strategy"
	"placer/hw"
	"placer/units"
)

// point is a measured collective.
type point struct {
	bytes float64
	us    float64
}

// measured is a table that somebody published, of NCCL's own choice of algorithm and protocol. None of
// its figures is among what NCCL's model rests on, nor among those of the machine.
type measured struct {
	name    string
	source  string
	machine func(t *testing.T) *hw.Machine
	kind    strategy.Kind
	graph   bool    // in a captured graph
	within  float64 // every time is predicted within this share of it,
	mean    float64 // and in the mean of all within this
	points  []point
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// tables are in-place times where a source has both.
func tables() []measured {
	built := func(name string, n int) func(t *testing.T) *hw.Machine {
		return func(t *testing.T) *hw.Machine {
			m, err := hw.Take(name, n, false)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	template := func(card string, n, hosts int, network string, nvlink bool) func(t *testing.T) *hw.Machine {
		return func(t *testing.T) *hw.Machine { return written(t, card, n, hosts, network, nvlink) }
	}
	return []measured{
		{"8 x A100 SXM, NVSwitch", "nccl-tests, a process for each GPU; notes on building nccl-tests, host thanos", built("a100", 8), strategy.AllReduce, false, 0.4, 0.2, []point{
			{8, 17.74}, {8 * kib, 24.3}, {64 * kib, 30.24}, {256 * kib, 26.18}, {512 * kib, 26.79}, {mib, 38.57}, {2 * mib, 55.32}, {4 * mib, 94.98}, {8 * mib, 127.8}, {16 * mib, 216.2},
			{32 * mib, 377.7}, {64 * mib, 614.8}, {128 * mib, 1187.8}, {256 * mib, 2217.6}, {gib, 8252.7}, {4 * gib, 32268}}},
		{"8 x A100 SXM, NVSwitch, another host", "nccl-tests 2.19.4, one process, whose launches hide what is below 4 MiB; a user's notes, host dkh", built("a100", 8), strategy.AllReduce, false, 0.35, 0.25, []point{
			{4 * mib, 105.59}, {8 * mib, 158.47}, {16 * mib, 271.67}, {32 * mib, 432.67}, {64 * mib, 672.56}, {128 * mib, 1284.21}}},
		{"8 x H100 SXM, NVSwitch", "torch.distributed; ByteDance-Seed/Triton-distributed, issue 57 (its 2 MB, 291 us, is left out)", built("h100", 8), strategy.AllReduce, false, 0.4, 0.25, []point{
			{128, 19.19}, {kib, 19.50}, {16 * kib, 20.71}, {32 * kib, 22.65}, {64 * kib, 23.05}, {128 * kib, 23.71}, {256 * kib, 24.76}, {512 * kib, 25.24}, {mib, 32.42}, {4 * mib, 59.43}, {8 * mib, 90.51}, {16 * mib, 135.68}}},
		{"8 x H100 SXM, NVSwitch, large", "nccl-tests; NVIDIA/nccl-tests, issue 290", built("h100", 8), strategy.AllReduce, false, 0.2, 0.1, []point{
			{128 * mib, 614.3}, {256 * mib, 1134.8}, {512 * mib, 2181.4}, {gib, 4043.6}, {2 * gib, 8002.1}, {4 * gib, 15773}}},
		{"6 x H100 SXM", "in a graph; vllm-project/vllm, pull request 24111, column pynccl", built("h100", 6), strategy.AllReduce, true, 0.35, 0.2, []point{
			{mib / 2, 23}, {mib, 25}, {1.5 * mib, 32}, {2 * mib, 43}, {3 * mib, 47}, {4 * mib, 53}}},
		{"4 x H100 SXM", "in a graph; vllm-project/vllm, pull request 24532, column pynccl", built("h100", 4), strategy.AllReduce, true, 0.35, 0.2, []point{
			{mib / 2, 21}, {mib, 23}, {1.5 * mib, 25}, {2 * mib, 28}, {3 * mib, 33}, {4 * mib, 39}}},
		{"2 x B200 SXM", "in a graph; vllm-project/vllm, pull request 42324, column pynccl", built("b200", 2), strategy.AllReduce, true, 0.35, 0.3, []point{
			{mib / 2, 13}, {mib, 17}, {1.5 * mib, 19}}},
		{"8 x H100 SXM, all-gather", "least time of the kernel; NVIDIA/Megatron-LM, pull request 5596", built("h100", 8), strategy.AllGather, true, 0.25, 0.2, []point{
			{2 * mib, 20.2}, {8 * mib, 43.4}, {32 * mib, 118.9}, {128 * mib, 385.3}}},
		{"8 x H100 SXM, reduce-scatter", "least time of the kernel; NVIDIA/Megatron-LM, pull request 5596", built("h100", 8), strategy.ReduceScatter, true, 0.35, 0.2, []point{
			{2 * mib, 18.6}, {8 * mib, 47.0}, {32 * mib, 112.6}}},
		{"2 hosts of 8 x H200, 8 x 400 Gb/s each", "nccl-tests 2.18.3, NCCL 2.30.4, a process for each host; notes on containers with NVIDIA's tools for RDMA", template("h200", 8, 2, "8x400Gb/s", true), strategy.AllReduce, false, 0.65, 0.35, []point{
			{kib, 43.74}, {64 * kib, 65.48}, {256 * kib, 63.42}, {mib, 77.16}, {4 * mib, 105.58}, {8 * mib, 149.06}, {32 * mib, 277.0}, {128 * mib, 747.72}, {512 * mib, 2322.37}, {2 * gib, 8501.88}, {8 * gib, 33208}}},
		{"8 hosts of 8 x H800, all-to-all", "nccl-tests; NVIDIA/nccl, issue 1531, which does not name the NICs: those of a DGX are taken", template("h100", 8, 8, "8x400Gb/s", true), strategy.AllToAll, false, 0.25, 0.25, []point{
			{8 * mib, 295.6}}},
		{"4 x V100 PCIe 3.0", "nccl-tests, NCCL 2.8.3; the University of Sheffield's HPC documentation, Bessemer, node 026", template("v100", 4, 1, "", false), strategy.AllReduce, false, 0.45, 0.2, []point{
			{8, 13.39}, {8 * kib, 15.91}, {64 * kib, 30.96}, {128 * kib, 49.39}, {256 * kib, 68.22}, {512 * kib, 86.15}, {mib, 156.3}, {4 * mib, 647.9}, {16 * mib, 2660.4}, {128 * mib, 21352}}},
	}
}

// TestMeasuredCollectives holds what is predicted against published tables of other people's
// measurements; docs/strategies.md has them.
func TestMeasuredCollectives(t *testing.T) {
	for _, x := range tables() {
		t.Run(x.name, func(t *testing.T) {
			m := x.machine(t)
			if x.graph {
				m = m.Captured()
			}
			j, err := NewJudge(source(), m)
			if err != nil {
				t.Fatal(err)
			}
			n := m.NumDevices()
			sum, log := 0.0, 0.0
			for _, p := range x.points {
				s, err := j.collectiveSeconds(strategy.Mesh{Data: n, Pipeline: 1, Tensor: 1}, strategy.Collective{Kind: x.kind, Bytes: units.Bytes(p.bytes), Ranks: n})
				if err != nil {
					t.Fatal(err)
				}
				ratio := 1e6 * s / p.us
				t.Logf("%11.0f B: %9.4g us, measured %9.4g, %.2f", p.bytes, 1e6*s, p.us, ratio)
				sum, log = sum+math.Abs(ratio-1), log+math.Log(ratio)
				if math.Abs(ratio-1) > x.within {
					t.Errorf("%.0f B: %.4g us, measured %.4g, want it within %.0f%%", p.bytes, 1e6*s, p.us, 100*x.within)
				}
			}
			mean := sum / float64(len(x.points))
			t.Logf("%s: mean error %.1f%%, geometric mean %.2f", x.source, 100*mean, math.Exp(log/float64(len(x.points))))
			if mean > x.mean {
				t.Errorf("mean error %.1f%%, want at most %.0f%%", 100*mean, 100*x.mean)
			}
		})
	}
}

// TestNCCLsOwnFigures: latencies and rates that NCCL itself printed of its model: of two GPUs of a host
// (vllm-project/vllm, issue 28901: rows AllGather and Broadcast), of three hosts of eight H100 (NVIDIA/nccl,
// issue 1453: "64 Bytes -> Algo 0 proto 0 time 25.207382"), and of two hosts of one GPU each.
func TestNCCLsOwnFigures(t *testing.T) {
	pair := fabric{ranks: 2, hosts: 1, arch: 90, medium: hw.NVLink, bus: 160e9}
	three := fabric{ranks: 24, hosts: 3, arch: 90, medium: hw.NVLink, bus: 370e9, wire: 45e9}
	lone := fabric{ranks: 2, hosts: 2, arch: 80, wire: 2.4e9}
	gather := strategy.Collective{Kind: strategy.AllGather, Ranks: 2}
	reduce := strategy.Collective{Kind: strategy.AllReduce, Ranks: 2}
	many := strategy.Collective{Kind: strategy.AllReduce, Ranks: 24}
	for name, x := range map[string]struct{ got, want float64 }{
		"pair, ring, LL":               {pair.ringBy(ll, gather), 7.2e-6},
		"pair, ring, LL128":            {pair.ringBy(ll128, gather), 15.9e-6},
		"pair, ring, simple":           {pair.ringBy(simple, gather), 11.8e-6},
		"three hosts, tree, LL":        {three.treeBy(ll, many), 25.2e-6},
		"a GPU each, ring, LL":         {lone.ringBy(ll, reduce), 16.6e-6},
		"a GPU each, ring, LL128":      {lone.ringBy(ll128, reduce), 31.0e-6},
		"a GPU each, gathered, LL":     {lone.ringBy(ll, gather), 11.6e-6},
		"a GPU each, gathered, LL128":  {lone.ringBy(ll128, gather), 22.5e-6},
		"a GPU each, gathered, simple": {lone.ringBy(simple, gather), 22.4e-6},
		"a GPU each, tree, LL":         {lone.treeBy(ll, reduce), 16.8e-6},
		"a GPU each, tree, LL128":      {lone.treeBy(ll128, reduce), 31.0e-6},
		"a GPU each, tree, simple":     {lone.treeBy(simple, reduce), 36.4e-6},
	} {
		if math.Abs(x.got/x.want-1) > 1e-9 {
			t.Errorf("%s: %.4g s, NCCL says %.4g", name, x.got, x.want)
		}
	}
	gather.Bytes = 1 << 30
	for p, rate := range map[protocol]float64{ll: 160e9, ll128: 294.4e9, simple: 320e9} { // of the whole tensor
		latency := pair.ringBy(p, strategy.Collective{Kind: strategy.AllGather, Ranks: 2})
		if got := float64(gather.Bytes) / (pair.ringBy(p, gather) - latency); math.Abs(got/rate-1) > 1e-9 {
			t.Errorf("protocol %d: %.4g B/s, NCCL says %.4g", p, got, rate)
		}
	}
}
