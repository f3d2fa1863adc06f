package sequential

import (
	"os"
	"testing"

	"placer/plan"
)

// readPolicy returns the recorded policy that has not seen a family.
func readPolicy(t testing.TB, heldOut string) *Policy {
	t.Helper()
	name := "../../../experiments/transfer/policies/without-" + heldOut + ".safetensors"
	b, err := os.ReadFile(name)
	must(t, err)
	p, err := Read(b, name)
	must(t, err)
	return p
}

// BenchmarkDirect makes and judges four placements of a problem that is ready, features
// and all.
func BenchmarkDirect(b *testing.B) {
	for _, c := range []struct {
		workload string
		devices  int
		heldOut  string
	}{
		{"wavenet4", 4, "wavenet"},
		{"amoebanet", 4, "amoebanet"},
		{"rnnlm8", 8, "rnnlm"},
		{"trfxl4", 4, "trfxl"},
		{"inception", 2, "inception"},
		{"gnmt8", 8, "gnmt"},
	} {
		b.Run(c.workload, func(b *testing.B) {
			policy := readPolicy(b, c.heldOut)
			p, err := Case{Workload: c.workload, GPU: "p100", Devices: c.devices}.Problem()
			must(b, err)
			p.Tasks = plan.Place
			p.Units = p.Units.WithPartialGradients(p.Graph, p.Evaluator.OpSeconds(0)) // as problems of placement have them
			b.ReportAllocs()
			for b.Loop() {
				f, err := NewFeatures(p)
				must(b, err)
				_, err = policy.Direct(b.Context(), f, 4)
				must(b, err)
			}
		})
	}
}
