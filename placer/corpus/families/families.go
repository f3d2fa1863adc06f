package families

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Family is a source of graphs.
type Family struct {
	Name string
	// draw returns a member's name, as Build takes it.
	draw func(r *rand.Rand) string
	// from, where it is not nil, are families of which a member joins two.
	from []Family
}

// Draw returns the name of a random member, as Build takes it, and the families that it
// belongs to: f, and those that it joins.
func (f Family) Draw(r *rand.Rand) (name string, of []string) {
	of = []string{f.Name}
	if f.from == nil {
		return f.draw(r), of
	}
	for range 2 {
		part := f.from[r.IntN(len(f.from))]
		x := part.draw(r)
		if name == "" {
			name = mixed + x
		} else {
			name += join + x
		}
		of = append(of, part.Name)
	}
	return name, of
}

// n returns a number from lo to hi.
func n(r *rand.Rand, lo, hi int) int { return lo + r.IntN(hi-lo+1) }

// of returns one of xs.
func of[T any](r *rand.Rand, xs ...T) T { return xs[r.IntN(len(xs))] }

// Papers returns the papers' families, three of today's and four styles of generated
// nets, in a fixed order. Members are shorter and narrower than the papers' workloads, so
// that a step of training takes milliseconds, and deeper and wider in places, so that they
// enclose them.
func Papers() []Family {
	return []Family{
		{Name: "rnnlm", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("rnnlm:layers=%d,unroll=%d,batch=%d,hidden=%d,vocab=%d", n(r, 2, 8), n(r, 6, 24), of(r, 32, 64, 128), of(r, 1024, 1536, 2048, 2560), of(r, 5000, 10000, 20000, 40000))
		}},
		{Name: "gnmt", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("gnmt:layers=%d,source=%d,target=%d,batch=%d,hidden=%d,vocab=%d", n(r, 2, 8), n(r, 4, 14), n(r, 4, 14), of(r, 32, 64, 128), of(r, 512, 1024, 1536), of(r, 8000, 16000, 32000))
		}},
		{Name: "trfxl", draw: func(r *rand.Rand) string {
			segment, heads := of(r, 32, 64, 128), of(r, 4, 8, 10, 16)
			return fmt.Sprintf("trfxl:layers=%d,batch=%d,sequence=%d,segment=%d,hidden=%d,ffn=%d,heads=%d,head_dim=%d,vocab=%d", n(r, 2, 8), of(r, 32, 64, 128), segment*n(r, 2, 6), segment,
				of(r, 256, 500, 512, 768), of(r, 1000, 2048, 3072), heads, of(r, 32, 50, 64), of(r, 5000, 10000, 30000))
		}},
		{Name: "inception", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("inception:batch=%d,size=%d,fused_norm=%t,averages=%t,auxiliary=%t", of(r, 16, 32, 48, 64), of(r, 139, 171, 203, 235, 267, 299), r.IntN(3) > 0, r.IntN(3) == 0, r.IntN(3) > 0)
		}},
		{Name: "amoebanet", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("amoebanet:cells=%d,filters=%d,batch=%d,size=%d,averages=%t", 3*n(r, 1, 4), 16*n(r, 3, 12), of(r, 16, 32, 64), of(r, 128, 160, 192, 224), r.IntN(4) == 0)
		}},
		{Name: "wavenet", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("wavenet:stacks=%d,layers_per_stack=%d,batch=%d,length=%d,residual=%d,skip=%d", n(r, 1, 4), n(r, 5, 10), of(r, 16, 32, 64), of(r, 1024, 2048, 4096), of(r, 64, 128, 192), of(r, 128, 256, 512))
		}},
		{Name: "llama", draw: func(r *rand.Rand) string {
			heads := of(r, 8, 16)
			return fmt.Sprintf("llama:layers=%d,hidden=%d,heads=%d,kv_heads=%d,ffn=%d,vocab=%d,seq=%d,batch=%d,attention=products", n(r, 2, 10), of(r, 512, 1024, 2048), heads, heads, of(r, 2048, 4096), of(r, 8000, 32000), of(r, 256, 512, 1024), n(r, 1, 4))
		}},
		{Name: "moe", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("moe:layers=%d,hidden=%d,heads=16,kv_heads=8,ffn=%d,vocab=%d,seq=%d,batch=%d,experts=%d,attention=products", n(r, 2, 5), of(r, 512, 1024), of(r, 1024, 2048, 4096), of(r, 8000, 32000), of(r, 256, 512, 1024), n(r, 1, 4), of(r, 4, 8))
		}},
		{Name: "vit", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("vit:layers=%d,hidden=%d,heads=8,ffn=%d,batch=%d,size=224,patch=%d,attention=products", n(r, 4, 12), of(r, 384, 512, 768, 1024), of(r, 1536, 3072), of(r, 16, 32, 64), of(r, 16, 28))
		}},
		generated("series-parallel"), generated("towers"), generated("crossed"), generated("skips"),
	}
}

// generated returns the family of generated nets of a style.
func generated(style string) Family {
	return Family{Name: style, draw: func(r *rand.Rand) string {
		return fmt.Sprintf("%s:%d,%d,%d,%g,%d", style, 8+r.IntN(40), 64<<r.IntN(5), 256<<r.IntN(4), []float64{0.5, 1, 2, 4}[r.IntN(4)], r.Uint32())
	}}
}

// related are sets of families so near that holding one out means holding out the others
// of the set. Of RNNLM and GNMT one may be held out without the other, as in the papers.
var related = [][]string{
	{"trfxl", "llama", "moe", "vit", "transformer", "clip", "serving"},
	{"wavenet", "skips"},
	{"rnnlm", "stack"},
	{"gnmt", "bilstm", "seq2seq"},
	{"inception", "resnext"},
	{"amoebanet", "densenet"},
	{"unet", "diffusion"},
	{"recommender", "experts"},
	{"moe", "experts"},
}

// Out reports whether a member of the families of is out where those of heldOut, and with
// them their kin, are held out.
func Out(of, heldOut []string) bool {
	for _, f := range of {
		for _, h := range heldOut {
			if f == h || slices.ContainsFunc(related, func(set []string) bool { return slices.Contains(set, f) && slices.Contains(set, h) }) {
				return true
			}
		}
	}
	return false
}

// Choose returns those of all that are named, all for no names, but for those held out
// and their kin. A name that no family has is an error.
func Choose(all []Family, names, heldOut []string) ([]Family, error) {
	if err := Known(slices.Concat(names, heldOut)); err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(f Family) bool {
		return len(names) > 0 && !slices.Contains(names, f.Name) || Out([]string{f.Name}, heldOut)
	})
	if len(left) == 0 {
		return nil, fmt.Errorf("no family is left to train on")
	}
	return left, nil
}

// Known reports the first name that no family has.
func Known(names []string) error {
	known := Names(All())
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown family %q, want some of %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Names returns the families' names.
func Names(fs []Family) (names []string) {
	for _, f := range fs {
		names = append(names, f.Name)
	}
	return names
}
