package families

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// All returns Papers and families far from the papers', in a fixed order: what a corpus
// is drawn from. Most members have a few thousand ops.
func All() []Family {
	all := append(Papers(), wider()...)
	mix := Family{Name: "mix", from: slices.Clone(all)}
	return append(all, serving(), mix)
}

func wider() []Family {
	return []Family{
		{Name: "unet", draw: func(r *rand.Rand) string {
			levels := n(r, 2, 5)
			return fmt.Sprintf("unet:levels=%d,blocks=%d,width=%d,size=%d,attention=%d,batch=%d", levels, n(r, 1, 3), of(r, 16, 32, 64, 128), of(r, 64, 128, 256), n(r, 0, 1), of(r, 4, 8, 16, 32))
		}},
		{Name: "diffusion", draw: func(r *rand.Rand) string {
			levels := n(r, 2, 4)
			return fmt.Sprintf("diffusion:levels=%d,blocks=%d,width=%d,size=%d,attention=%d,heads=%d,batch=%d", levels, n(r, 1, 2), of(r, 32, 64, 128), of(r, 32, 64), n(r, 1, levels), of(r, 4, 8), of(r, 8, 16, 32, 64))
		}},
		{Name: "resnext", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("resnext:blocks=%d,branches=%d,width=%d,size=%d,batch=%d,norm=%t", n(r, 1, 4), n(r, 2, 6), of(r, 8, 16, 32, 64), of(r, 96, 128, 192, 224), of(r, 8, 16, 32, 64), r.IntN(4) == 0)
		}},
		{Name: "densenet", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("densenet:layers=%d,growth=%d,size=%d,batch=%d", n(r, 3, 12), of(r, 16, 32, 48, 64), of(r, 96, 128, 192, 224), of(r, 8, 16, 32, 64))
		}},
		{Name: "stack", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("recurrent:layers=%d,unroll=%d,inputs=%d,hidden=%d,batch=%d,gru=%t", n(r, 2, 8), n(r, 4, 20), of(r, 64, 256, 1024), of(r, 256, 512, 1024, 2048), of(r, 16, 64, 256), r.IntN(2) == 0)
		}},
		{Name: "bilstm", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("recurrent:layers=%d,unroll=%d,inputs=%d,hidden=%d,batch=%d,gru=%t,bidirectional=true", n(r, 1, 5), n(r, 4, 16), of(r, 64, 256, 1024), of(r, 256, 512, 1024), of(r, 16, 64, 256), r.IntN(3) == 0)
		}},
		{Name: "seq2seq", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("seq2seq:encoder=%d,decoder=%d,source=%d,target=%d,hidden=%d,vocab=%d,batch=%d", n(r, 1, 4), n(r, 1, 4), n(r, 3, 10), n(r, 3, 10), of(r, 256, 512, 1024), of(r, 4000, 16000, 32000), of(r, 16, 64, 128))
		}},
		{Name: "transformer", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("transformer:encoder=%d,decoder=%d,hidden=%d,heads=%d,ffn=%d,source=%d,target=%d,vocab=%d,batch=%d", n(r, 1, 8), n(r, 1, 8), of(r, 256, 512, 1024), of(r, 4, 8, 16), of(r, 1024, 2048, 4096),
				of(r, 16, 64, 256), of(r, 16, 64, 256), of(r, 8000, 32000), of(r, 4, 16, 64))
		}},
		{Name: "clip", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("clip:images=%d,captions=%d,hidden=%d,heads=%d,tokens=%d,patch=%d,batch=%d", n(r, 2, 10), n(r, 2, 10), of(r, 256, 512, 768, 1024), of(r, 4, 8), of(r, 16, 32, 77), of(r, 16, 28, 32), of(r, 8, 32, 64, 128))
		}},
		{Name: "recommender", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("recommender:tables=%d,rows=%d,dim=%d,lookups=%d,bottom=%d,top=%d,width=%d,towers=%d,batch=%d", n(r, 4, 40), 1<<n(r, 14, 23), of(r, 16, 32, 64, 128), of(r, 1, 4, 16), n(r, 1, 5), n(r, 2, 6), of(r, 256, 512, 1024, 4096),
				n(r, 1, 3), of(r, 512, 2048, 8192))
		}},
		{Name: "experts", draw: func(r *rand.Rand) string {
			return fmt.Sprintf("recommender:tables=%d,rows=%d,dim=%d,lookups=%d,bottom=%d,top=%d,width=%d,towers=%d,experts=%d,batch=%d", n(r, 2, 16), 1<<n(r, 14, 22), of(r, 16, 32, 64), of(r, 1, 4), n(r, 1, 4), n(r, 2, 5), of(r, 512, 1024, 2048, 4096),
				n(r, 2, 6), n(r, 3, 12), of(r, 512, 2048, 8192))
		}},
	}
}

// serving is a large language model that answers beside a small one that drafts, as in
// speculative decoding (Leviathan et al., arXiv:2211.17192): the forward passes alone.
func serving() Family {
	return Family{Name: "serving", draw: func(r *rand.Rand) string {
		heads := of(r, 8, 16)
		target := fmt.Sprintf("llama:layers=%d,hidden=%d,heads=%d,kv_heads=%d,ffn=%d,seq=%d,batch=%d,optimizer=none,attention=products", n(r, 6, 20), of(r, 1024, 2048, 4096), heads, heads, of(r, 4096, 8192), of(r, 64, 256, 1024), n(r, 1, 8))
		draft := fmt.Sprintf("llama:layers=%d,hidden=%d,heads=8,kv_heads=8,ffn=%d,seq=%d,batch=%d,optimizer=none,attention=products", n(r, 2, 6), of(r, 512, 1024), of(r, 1024, 2048), of(r, 64, 256), n(r, 1, 8))
		return mixed + target + join + draft
	}}
}
