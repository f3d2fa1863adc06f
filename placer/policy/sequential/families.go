package sequential

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// family is a source of training graphs.
type family struct {
	name string
	// kin are families so near that holding one out means holding out the other.
	kin []string
	// draw returns a member's name, as workloads.Build takes it.
	draw func(r *rand.Rand) string
}

// families returns what pretraining draws graphs from, in a fixed order. Members
// are shorter and narrower than the papers' workloads, so that a step of training
// takes milliseconds, and deeper and wider in places, so that they enclose them.
func families() []family {
	n := func(r *rand.Rand, lo, hi int) int { return lo + r.IntN(hi-lo+1) }
	of := func(r *rand.Rand, xs ...int) int { return xs[r.IntN(len(xs))] }
	return []family{
		{name: "rnnlm", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("rnnlm:layers=%d,unroll=%d,batch=%d,hidden=%d,vocab=%d", n(r, 2, 8), n(r, 6, 24), of(r, 32, 64, 128), of(r, 1024, 1536, 2048, 2560), of(r, 5000, 10000, 20000, 40000))
		}},
		{name: "gnmt", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("gnmt:layers=%d,source=%d,target=%d,batch=%d,hidden=%d,vocab=%d", n(r, 2, 8), n(r, 4, 14), n(r, 4, 14), of(r, 32, 64, 128), of(r, 512, 1024, 1536), of(r, 8000, 16000, 32000))
		}},
		{name: "trfxl", kin: []string{"llama", "moe", "vit"}, draw: func(r *rand.Rand) string {
			segment, heads := of(r, 32, 64, 128), of(r, 4, 8, 10, 16)
			return fmt.Sprintf("trfxl:layers=%d,batch=%d,sequence=%d,segment=%d,hidden=%d,ffn=%d,heads=%d,head_dim=%d,vocab=%d", n(r, 2, 8), of(r, 32, 64, 128), segment*n(r, 2, 6), segment,
				of(r, 256, 500, 512, 768), of(r, 1000, 2048, 3072), heads, of(r, 32, 50, 64), of(r, 5000, 10000, 30000))
		}},
		{name: "inception", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("inception:batch=%d,size=%d,fused_norm=%t,averages=%t,auxiliary=%t", of(r, 16, 32, 48, 64), of(r, 139, 171, 203, 235, 267, 299), r.IntN(3) > 0, r.IntN(3) == 0, r.IntN(3) > 0)
		}},
		{name: "amoebanet", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("amoebanet:cells=%d,filters=%d,batch=%d,size=%d,averages=%t", 3*n(r, 1, 4), 16*n(r, 3, 12), of(r, 16, 32, 64), of(r, 128, 160, 192, 224), r.IntN(4) == 0)
		}},
		{name: "wavenet", kin: []string{"skips"}, draw: func(r *rand.Rand) string {
			return fmt.Sprintf("wavenet:stacks=%d,layers_per_stack=%d,batch=%d,length=%d,residual=%d,skip=%d", n(r, 1, 4), n(r, 5, 10), of(r, 16, 32, 64), of(r, 1024, 2048, 4096), of(r, 64, 128, 192), of(r, 128, 256, 512))
		}},
		{name: "llama", kin: []string{"trfxl", "moe", "vit"}, draw: func(r *rand.Rand) string {
			heads := of(r, 8, 16)
			return fmt.Sprintf("llama:layers=%d,hidden=%d,heads=%d,kv_heads=%d,ffn=%d,vocab=%d,seq=%d,batch=%d", n(r, 2, 10), of(r, 512, 1024, 2048), heads, heads, of(r, 2048, 4096), of(r, 8000, 32000), of(r, 256, 512, 1024), n(r, 1, 4))
		}},
		{name: "moe", kin: []string{"trfxl", "llama", "vit"}, draw: func(r *rand.Rand) string {
			return fmt.Sprintf("moe:layers=%d,hidden=%d,heads=16,kv_heads=8,ffn=%d,vocab=%d,seq=%d,batch=%d,experts=%d", n(r, 2, 5), of(r, 512, 1024), of(r, 1024, 2048, 4096), of(r, 8000, 32000), of(r, 256, 512, 1024), n(r, 1, 4), of(r, 4, 8))
		}},
		{name: "vit", kin: []string{"trfxl", "llama", "moe"}, draw: func(r *rand.Rand) string {
			return fmt.Sprintf("vit:layers=%d,hidden=%d,heads=8,ffn=%d,batch=%d,size=224,patch=%d", n(r, 4, 12), of(r, 384, 512, 768, 1024), of(r, 1536, 3072), of(r, 16, 32, 64), of(r, 16, 28))
		}},
		generated("series-parallel"), generated("towers"), generated("crossed"), generated("skips", "wavenet"),
	}
}

// generated returns the family of generated nets of a style.
func generated(style string, kin ...string) family {
	return family{name: style, kin: kin, draw: func(r *rand.Rand) string {
		return fmt.Sprintf("%s:%d,%d,%d,%g,%d", style, 8+r.IntN(40), 64<<r.IntN(5), 256<<r.IntN(4), []float64{0.5, 1, 2, 4}[r.IntN(4)], r.Uint32())
	}}
}

// chosen returns the families named, all for no names, but for those held out and
// their kin. An unknown name is an error.
func chosen(names, heldOut []string) ([]family, error) {
	all := families()
	for _, name := range slices.Concat(names, heldOut) {
		if !slices.Contains(familyNames(all), name) {
			return nil, fmt.Errorf("unknown family %q, want some of %s", name, strings.Join(familyNames(all), ", "))
		}
	}
	left := slices.DeleteFunc(all, func(f family) bool {
		return len(names) > 0 && !slices.Contains(names, f.name) ||
			slices.ContainsFunc(heldOut, func(h string) bool { return f.name == h || slices.Contains(f.kin, h) })
	})
	if len(left) == 0 {
		return nil, fmt.Errorf("no family is left to train on")
	}
	return left, nil
}

func familyNames(fs []family) (names []string) {
	for _, f := range fs {
		names = append(names, f.name)
	}
	return names
}

// drawCase returns a random member of f on a random machine.
func (f family) drawCase(r *rand.Rand) Case {
	c := Case{Workload: f.draw(r), GPU: "p100", Devices: []int{2, 2, 4, 4, 8}[r.IntN(5)]}
	if x := r.IntN(10); x < 3 {
		c.GPU = []string{"a100", "h100", "v100"}[x]
	}
	c.Bandwidth = []float64{1, 1, 1, 0.5, 2, 4}[r.IntN(6)]
	return c
}
