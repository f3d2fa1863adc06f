package decoder

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/units"
	"placer/workloads"
)

// maxHeader bounds the JSON header of safetensors, as the format's own reader does.
const maxHeader = 100_000_000

// SniffSafetensors reports whether data begins as safetensors do: eight bytes of length,
// then JSON.
func SniffSafetensors(data []byte) bool {
	return len(data) > 9 && data[8] == '{' && bytes.Equal(data[4:8], make([]byte, 4))
}

// listed is a tensor of the header.
type listed struct {
	DType   string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// ImportSafetensors reads the header of safetensors that hold a whole model under the
// names of Hugging Face. The number of attention heads is not in it: dims has it as
// "heads".
func ImportSafetensors(data []byte, name string, dims map[string]int64) (*Imported, error) {
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || n > uint64(len(data)-8) {
		return nil, fmt.Errorf("%s: safetensors: a header of %d bytes in a file of %d", name, n, len(data))
	}
	header, err := foreign.Import(data[8:8+n], name, func(h *map[string]listed) (map[string]listed, error) { return *h, nil })
	if err != nil {
		return nil, err
	}
	x, err := fromHeader(header, name, dims)
	if err != nil {
		return nil, fmt.Errorf("%s: safetensors: %w", name, err)
	}
	return x, nil
}

func fromHeader(header map[string]listed, name string, dims map[string]int64) (*Imported, error) {
	count := len(header)
	if _, ok := header["__metadata__"]; ok {
		count--
	}
	shape := func(tensor string, rank int) ([]int64, error) {
		t, ok := header[tensor]
		if !ok {
			return nil, fmt.Errorf("of %d tensors none is %s: is it a whole model of one of %s, in one file?", count, tensor, strings.Join(families(), ", "))
		}
		if len(t.Shape) != rank {
			return nil, fmt.Errorf("tensor %s has shape %v, want %d dimensions", tensor, t.Shape, rank)
		}
		return t.Shape, nil
	}
	const first = "model.layers.0."
	d := &workloads.Decoder{DType: graph.F32}
	table, err := shape("model.embed_tokens.weight", 2)
	if err != nil {
		return nil, err
	}
	d.Vocab, d.Hidden = table[0], table[1]
	q, err := shape(first+"self_attn.q_proj.weight", 2)
	if err != nil {
		return nil, err
	}
	k, err := shape(first+"self_attn.k_proj.weight", 2)
	if err != nil {
		return nil, err
	}
	for tensor := range header {
		if rest, ok := strings.CutPrefix(tensor, "model.layers."); ok {
			number, _, _ := strings.Cut(rest, ".")
			if l, err := strconv.Atoi(number); err == nil && l < 1<<20 {
				d.Layers = max(d.Layers, l+1)
			}
		}
		if rest, ok := strings.CutPrefix(tensor, first+"block_sparse_moe.experts."); ok {
			number, _, _ := strings.Cut(rest, ".")
			if e, err := strconv.Atoi(number); err == nil && e < 1<<20 {
				d.Experts, d.TopK = max(d.Experts, int64(e)+1), 2
			}
		}
	}
	gate := first + "mlp.gate_proj.weight"
	if d.Experts > 0 {
		gate = first + "block_sparse_moe.experts.0.w1.weight"
	}
	ffn, err := shape(gate, 2)
	if err != nil {
		return nil, err
	}
	d.FFN = ffn[0]
	_, d.Bias = header[first+"self_attn.q_proj.bias"]
	_, untied := header["lm_head.weight"]
	d.Tied = !untied
	switch header[first+"self_attn.q_proj.weight"].DType {
	case "F16":
		d.DType = graph.F16
	case "BF16":
		d.DType = graph.BF16
	}
	heads, ok := dims["heads"]
	if !ok {
		return nil, fmt.Errorf("the header does not say how many attention heads a layer has: state them by --dim heads=N, or read the model's config.json")
	}
	if heads < 1 || heads > q[0] || q[0]%heads != 0 || k[0]%(q[0]/heads) != 0 {
		return nil, fmt.Errorf("%d heads do not divide queries of %d and keys of %d", heads, q[0], k[0])
	}
	d.Heads, d.HeadDim = heads, q[0]/heads
	d.KVHeads = k[0] / d.HeadDim
	d.Stored = func(weight string) (units.Bytes, bool) {
		t, ok := header[weight]
		if !ok || len(t.Offsets) != 2 || t.Offsets[1] < t.Offsets[0] || t.Offsets[1]-t.Offsets[0] > 1<<50 {
			return 0, false
		}
		return units.Bytes(t.Offsets[1] - t.Offsets[0]), true
	}
	x, err := step(d, name, dims, "heads")
	if err != nil {
		return nil, err
	}
	x.Weights = count
	return x, nil
}
