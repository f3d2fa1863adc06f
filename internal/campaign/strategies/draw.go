package strategies

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/hw"
	"placer/placer/strategies"
	"placer/units"
	"placer/workloads"
)

// Case is one drawn comparison.
type Case struct {
	Seed    uint64
	Model   string           // of package workloads, or a decoder's configuration
	Sizes   map[string]int64 // of a decoder's step
	Batch   int64
	Machine *hw.Machine
	Eager   bool
	OneShot bool
}

// Family returns the model of c at any batch.
func (c *Case) Family() strategies.Family {
	if !strings.HasPrefix(c.Model, "{") {
		return func(batch int64) (*graph.Graph, error) { return workloads.BuildBatch(c.Model, batch) }
	}
	return func(batch int64) (*graph.Graph, error) {
		dims := map[string]int64{"batch": batch}
		for k, n := range c.Sizes {
			dims[k] = n
		}
		x, err := decoder.ImportConfig([]byte(c.Model), "decoder", decoder.Options{Dims: dims})
		if err != nil {
			return nil, err
		}
		return x.Graph, nil
	}
}

func (c *Case) String() string {
	return fmt.Sprintf("%s %v, batch of %d, on %d x %s", c.Model, c.Sizes, c.Batch, c.Machine.NumDevices(), c.Machine.Devices[0].Model)
}

// Draw draws the case of a seed.
func Draw(seed uint64) (*Case, error) {
	r := rand.New(rand.NewPCG(seed, 0x737472617465)) // "strate"
	c := &Case{Seed: seed, Eager: r.IntN(4) == 0, OneShot: r.IntN(4) == 0}
	c.Batch = []int64{1, 2, 3, 4, 6, 7, 8, 8, 12, 16, 16, 24, 32, 64}[r.IntN(14)]
	c.drawModel(r)
	g, err := c.Family()(c.Batch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Model, err)
	}
	c.Machine, err = drawMachine(r, g)
	return c, err
}

// drawModel draws a small model of one of the structures that strategies know.
func (c *Case) drawModel(r *rand.Rand) {
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	kv := pick(1, 2, 4, 8)
	heads := kv * pick(1, 2, 3)
	hidden := heads * pick(16, 32, 64, 128)
	layers, ffn, seq, vocab := 1+r.IntN(4), 32*pick(3, 16, 64, 128), pick(16, 64, 512), pick(100, 1000, 32000)
	optimizer := []string{"sgd", "momentum", "adam"}[r.IntN(3)]
	switch r.IntN(9) {
	case 0:
		c.Model = fmt.Sprintf("gnmt:layers=%d,source=2,target=2,hidden=%d,vocab=%d,optimizer=%s", 2+r.IntN(3), 8*hidden, vocab, optimizer)
	case 1:
		c.Model = fmt.Sprintf("rnnlm:layers=%d,unroll=4,hidden=%d,vocab=%d,optimizer=%s", layers, 8*hidden, vocab, optimizer)
	case 2:
		c.Model = fmt.Sprintf("vit:layers=%d,hidden=%d,heads=%d,ffn=%d,size=64,classes=%d,optimizer=%s", layers, hidden, heads, ffn, vocab, optimizer)
	case 3, 4:
		c.Model = fmt.Sprintf("moe:layers=%d,hidden=%d,heads=%d,kv_heads=%d,ffn=%d,seq=%d,vocab=%d,experts=%d,grouped=%v,optimizer=%s", 1+r.IntN(2), hidden, heads, kv, ffn, seq, vocab, pick(2, 3, 4, 8), r.IntN(2) == 0, optimizer)
	case 5, 6:
		c.Model = fmt.Sprintf("llama:layers=%d,hidden=%d,heads=%d,kv_heads=%d,ffn=%d,seq=%d,vocab=%d,attention=%s,optimizer=%s", layers, hidden, heads, kv, ffn, seq, vocab, []string{"kernel", "products"}[r.IntN(2)], optimizer)
	default:
		of := map[string]any{"model_type": "llama", "torch_dtype": "bfloat16", "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv, "intermediate_size": ffn, "vocab_size": vocab}
		if r.IntN(2) == 0 {
			of["model_type"], of["num_local_experts"], of["num_experts_per_tok"] = "mixtral", pick(2, 4, 8), 2
		}
		text, _ := json.Marshal(of) // strings and numbers
		c.Model, c.Sizes = string(text), map[string]int64{"seq": 1, "past": int64(pick(16, 512, 4096)), "attention_kernels": int64(pick(1, 3))}
		if r.IntN(3) == 0 {
			c.Sizes = map[string]int64{"seq": int64(seq)}
		}
	}
}

// drawMachine draws one to three hosts of one to eight GPUs, joined by a switch or over PCIe.
func drawMachine(r *rand.Rand, g *graph.Graph) (*hw.Machine, error) {
	cards := []string{"h100", "a100", "rtx4090", "v100"}
	card, err := hw.FindCard(cards[r.IntN(len(cards))])
	if err != nil {
		return nil, err
	}
	t := hw.Template{Name: "drawn", NVLink: card.Switched() && r.IntN(3) > 0, Hosts: []int{1, 1, 1, 2, 2, 3}[r.IntN(6)]}
	n := []int{1, 2, 2, 3, 4, 4, 6, 8}[r.IntN(8)]
	if t.Hosts > 1 {
		n = min(n, 4)
		nics := []int{1, n}[r.IntN(2)]
		if t.Network, err = hw.ParseNetwork(fmt.Sprintf("%dx%s", nics, []string{"10Gb/s", "100Gb/s", "400Gb/s"}[r.IntN(3)])); err != nil {
			return nil, err
		}
	}
	t.NVLink = t.NVLink && n > 1
	for range n {
		t.Cards = append(t.Cards, card)
	}
	var text strings.Builder
	if err := t.Write(&text); err != nil {
		return nil, err
	}
	m, err := hw.Read(strings.NewReader(text.String()))
	if err != nil {
		return nil, err
	}
	need := float64(g.Resident())
	for i := range graph.TensorID(g.NumTensors()) {
		need += float64(g.Tensor(i).Bytes)
	}
	roomy := []float64{0, 0, 2, 1, 0.5, 0.2}[r.IntN(6)]
	slow := r.IntN(6) == 0
	for k := range m.Devices {
		d := &m.Devices[k]
		if roomy > 0 {
			d.Memory = units.Bytes(max(1, roomy*need/float64(len(m.Devices))))
		}
		if slow && k%2 == 1 {
			peak := map[string]units.FLOPsPerSecond{}
			for name, p := range d.Peak {
				peak[name] = p / 2
			}
			d.Peak, d.Model = peak, d.Model+"-half"
		}
	}
	return m, m.Check()
}
