package workloads

import (
	"testing"

	"placer/graph"
)

// TestMasterWeights: master weights and state in f32 add 8 bytes a parameter of 16 bits
// under Adam (two slots of 2 bytes become 4, and the copy has 4), 6 under momentum, 4 under
// plain gradient descent; in micro-batches too.
func TestMasterWeights(t *testing.T) {
	for _, name := range []string{
		"llama:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,vocab=100,seq=16,batch=2",
		"llama:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,vocab=100,seq=16,batch=6,micro_batches=3",
		"moe:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,vocab=100,seq=16,experts=4,batch=2",
		"vit:layers=1,hidden=64,heads=4,ffn=128,size=32,classes=10",
		"unet:levels=1,blocks=1,width=4,size=8,heads=1,batch=1,dtype=bf16",
		"recurrent:layers=1,unroll=2,inputs=8,hidden=8,classes=4,batch=2,dtype=f16",
		"transformer:encoder=1,decoder=1,hidden=8,heads=2,ffn=16,source=4,target=4,vocab=20,batch=2,dtype=bf16",
		"clip:images=1,captions=1,hidden=8,heads=2,tokens=4,size=16,patch=8,vocab=20,joint=8,batch=2,dtype=bf16",
	} {
		for optimizer, more := range map[string]int64{"adam": 8, "momentum": 6, "sgd": 4} {
			without := built(t, name+",optimizer="+optimizer)
			with := built(t, name+",master_weights=true,optimizer="+optimizer)
			params := int64(0)
			for i := range graph.OpID(without.NumOps()) {
				if o := without.Op(i); o.Params > 0 {
					if first, _ := without.Outputs(i); without.Tensor(first).DType.Size() == 2 {
						params += o.Params
					}
				}
			}
			if got := held(with) - held(without); got != more*params || params == 0 {
				t.Errorf("%s, %s: %d bytes more for %d parameters of 16 bits, want %d", name, optimizer, got, params, more*params)
			}
		}
	}
}

// held returns the bytes of all variables of g.
func held(g *graph.Graph) (b int64) {
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); o.Kind.Class() == graph.ClassVariable {
			b += int64(o.Resident)
		}
	}
	return b
}
