package cli

import (
	"os"
	"strings"
	"testing"
)

// A plan whose sizes no device can hold is infeasible by the largest load.
func TestSimulateByLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"full.json": `{"maxSizePerFPGA": 50.0, "maxFPGAs": 2, "maxCPUs": 0, "nodes": [
{"id": 1, "name": "dense", "supportedOnFpga": 1, "cpuLatency": 90, "fpgaLatency": 4, "isBackwardNode": 0, "size": 30},
{"id": 2, "name": "loss", "supportedOnFpga": 1, "cpuLatency": 90, "fpgaLatency": 3, "isBackwardNode": 0, "size": 30}],
"edges": [{"sourceId": 1, "destId": 2, "cost": 0}]}`,
		"split.json": `{"fpgas": [{"nodes": [1, 2]}, {"nodes": []}], "cpus": []}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out := command(t, []string{"export", "--graph", "full.json", "--split", "-", "-o", "plan.json", "<", "split.json"}); out != "" {
		t.Fatal(out)
	}
	out := command(t, []string{"simulate", "--graph", "full.json", "--plan", "plan.json", "--objective", "throughput"})
	for _, want := range []string{"max load 7 ms; proven lower bound ", "; 10 B more than the devices have\n", "by the throughput objective the plan takes 10 B more memory", "\nexit 3\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
