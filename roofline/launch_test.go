package roofline_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/roofline"
	"placer/units"
	"placer/workloads"
)

// docs/hardware-models.md says what share of all op times is launches of ops that TensorFlow
// runs without a kernel: kinds that have one, with neither arithmetic nor bytes.
func TestLaunchesWithoutKernels(t *testing.T) {
	share := func(workload, gpu string) float64 {
		g, err := workloads.Build(workload)
		if err != nil {
			t.Fatal(err)
		}
		m, err := hw.Take(gpu, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		costs, err := roofline.New(g, m, roofline.Default())
		if err != nil {
			t.Fatal(err)
		}
		var all, without units.Seconds
		for i := range graph.OpID(g.NumOps()) {
			o, s := g.Op(i), costs.OpSeconds(i, 0)
			f, _ := graph.FactsOf(o.Kind)
			if all += s; o.FLOPs == 0 && o.Bytes == 0 && f.Class.Launches() && !f.InPlace {
				without += s
			}
		}
		return 100 * float64(without/all)
	}
	page, err := os.ReadFile("../docs/hardware-models.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	of := func(gpu string) (s [3]float64) {
		for k, w := range []string{"rnnlm4", "gnmt8", "inception"} {
			s[k] = share(w, gpu)
		}
		return s
	}
	p, h := of("p100"), of("h100")
	rest := 0.
	for _, w := range []string{"amoebanet", "wavenet2", "llama", "vit"} {
		rest = math.Max(rest, share(w, "h100"))
	}
	said := fmt.Sprintf("on a P100 %.1f%% of the time of all ops of rnnlm4, %.1f%% of gnmt8 and %.1f%% of inception, on an H100 %.1f, %.1f and %.1f%%; at most %.1f%% of trfxl4 and %.1f%% of amoebanet, wavenet2, llama and vit",
		p[0], p[1], p[2], h[0], h[1], h[2], share("trfxl4", "h100"), rest)
	if !strings.Contains(text, said) {
		t.Errorf("the page does not say %q", said)
	}
}
