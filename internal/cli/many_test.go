package cli

import (
	"strings"
	"testing"
)

// TestManyDevices: a cluster has strategies; what places single ops says that it takes fewer devices,
// and takes them by --gpus.
func TestManyDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	if out := command(t, strings.Fields("machines init --gpu h100 --gpus 8 --nodes 16 --network 8x400Gb/s -o cluster.json")); strings.Contains(out, "exit") {
		t.Fatal(out)
	}
	for _, c := range []struct{ args, want string }{
		{"strategies --strategy zero-1=64~tp=2 --workload llama:layers=1,hidden=64,heads=2,kv_heads=2,ffn=64,seq=8,vocab=64 --batch 128", "zero-1=64 tp=2"},
		{"search --workload rnnlm:layers=1,unroll=2 --evaluations 5", "machine cluster has 128 devices, ops are placed one by one on at most 64; --gpus 64 takes the first of them"},
		{"search --workload rnnlm:layers=1,unroll=2 --evaluations 5 --methods single --gpus 8 --out run", "single"},
		{"fit --workload rnnlm:layers=1,unroll=2", "on at most 64"},
		{"verdict --workload rnnlm:layers=1,unroll=2 --counts 8,128 --evaluations 5", "--counts 128: an answer places single ops, on at most 64 devices"},
		{"machines", "128 x"},
	} {
		args := append(strings.Fields(c.args), "--machine", "cluster.json")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "~", " ")
		}
		if out := command(t, args); !strings.Contains(out, c.want) {
			t.Errorf("%s: %s, want %q", c.args, out, c.want)
		}
	}
}
