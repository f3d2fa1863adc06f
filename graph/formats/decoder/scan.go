package decoder

import (
	"cmp"
	"fmt"
	"slices"

	"placer/graph/formats/foreign"
	"placer/workloads"
)

// scanConfig is what a config.json says of state-space layers, by the names of three families.
type scanConfig struct {
	MambaHeads  int64 `json:"mamba_n_heads"`
	NemoHeads   int64 `json:"mamba_num_heads"`
	ScanHeads   int64 `json:"num_heads"`
	MambaDim    any   `json:"mamba_d_head"`
	NemoDim     int64 `json:"mamba_head_dim"`
	MambaGroups int64 `json:"mamba_n_groups"`
	Groups      int64 `json:"n_groups"`
	MambaState  int64 `json:"mamba_d_state"`
	NemoState   int64 `json:"ssm_state_size"`
	State       int64 `json:"state_size"`
	MambaKernel int64 `json:"mamba_d_conv"`
	Kernel      int64 `json:"conv_kernel"`
	MambaExpand int64 `json:"mamba_expand"`
	MambaChunk  int64 `json:"mamba_chunk_size"`
	ScanChunk   int64 `json:"chunk_size"`

	MambaConvBias bool `json:"mamba_conv_bias"`
	ConvBias      bool `json:"use_conv_bias"`
	MambaBias     bool `json:"mamba_proj_bias"`

	BlockTypes    []string `json:"layers_block_type"`
	BlockPattern  string   `json:"hybrid_override_pattern"`
	AttnLayers    []int64  `json:"attn_layer_indices"`
	PositionTypes string   `json:"position_embedding_type"`

	MLPAct        string `json:"mlp_hidden_act"`
	SharedWidth   int64  `json:"shared_intermediate_size"`
	SharedExperts int64  `json:"moe_shared_expert_intermediate_size"`
	LatentFFN     *int64 `json:"moe_latent_size"`
}

// What a layer is, by the names of transformers 5 and of files before.
const (
	keepsState = "linear_attention"
	attends    = "full_attention"
	isMLP      = "mlp"
	isMoE      = "moe"
)

// patternKinds are the letters of hybrid_override_pattern.
var patternKinds = map[rune]string{'M': keepsState, '*': attends, '-': isMLP, 'E': isMoE}

// blockTypes returns what each layer is, nil where the file does not say.
func (c *config) blockTypes() ([]string, error) {
	named := c.BlockTypes
	if len(named) == 0 {
		named = c.LayerTypes
	}
	var out []string
	for i, kind := range named {
		switch kind {
		case "mamba", "mamba2":
			kind = keepsState
		case "attention":
			kind = attends
		case keepsState, attends, isMLP, isMoE:
		default:
			return nil, fmt.Errorf("layer %d has %s, which is not read", i, foreign.Brief(kind))
		}
		out = append(out, kind)
	}
	if out != nil {
		return out, nil
	}
	for i, letter := range []rune(c.BlockPattern) {
		kind, ok := patternKinds[letter]
		if !ok {
			return nil, fmt.Errorf("hybrid_override_pattern: layer %d is %q, want M, *, - or E", i, letter)
		}
		out = append(out, kind)
	}
	return out, nil
}

// blockType returns what layer i is, or what layers are that the file does not name.
func (c *config) blockType(i int64, other string) (string, error) {
	all, err := c.blockTypes()
	switch {
	case err != nil:
		return "", err
	case all == nil && c.AttnLayers != nil && slices.Contains(c.AttnLayers, i):
		return attends, nil
	case all == nil:
		return other, nil
	case int64(len(all)) != c.layers():
		return "", fmt.Errorf("the kinds of %d of %d layers are named", len(all), c.layers())
	}
	return all[i], nil
}

// scan is the state-space layer of a module within block b.
func (c *config) scan(b *workloads.Block, module string) *workloads.Scan {
	heads := cmp.Or(c.MambaHeads, c.NemoHeads, c.ScanHeads)
	dim := cmp.Or(c.NemoDim, c.MambaExpand*c.hidden()/max(heads, 1))
	switch {
	case c.ScanHeads > 0:
		dim = or(c.HeadDim)
	case c.NemoDim == 0:
		if n, ok := c.MambaDim.(float64); ok {
			dim = int64(n)
		}
	}
	bias := c.MambaBias || c.UseBias
	return &workloads.Scan{Path: b.Path + "." + module, Heads: heads, HeadDim: dim, Groups: cmp.Or(c.MambaGroups, c.Groups), State: cmp.Or(c.MambaState, c.NemoState, c.State),
		Kernel: cmp.Or(c.MambaKernel, c.Kernel), Chunk: cmp.Or(c.MambaChunk, c.ScanChunk), ConvBias: c.MambaConvBias || c.ConvBias,
		In: workloads.Linear{Name: "in_proj", Bias: bias}, Out: workloads.Linear{Name: "out_proj", Bias: bias}}
}

// hybrid has a state-space layer in the place of attention in all layers but those that are named.
func hybrid(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
	kind, err := c.blockType(i, keepsState)
	if err != nil {
		return err
	}
	switch kind {
	case keepsState:
		b.Scan = c.scan(b, "mamba")
	case attends:
		b.Attention.Rotary = c.PositionTypes == "rope" || c.AttnLayers != nil
	default:
		return fmt.Errorf("layer %d is %s alone, which this family has not", i, kind)
	}
	return nil
}

// single has one part in each layer, behind a norm.
//
//go:noinline
func single(other string) choice {
	return func(c *config, _ *workloads.Decoder, b *workloads.Block, i int64) error {
		kind, err := c.blockType(i, other)
		if err != nil {
			return err
		}
		m := b.MLP
		m.Path, b.Attention.Path, b.Attention.Rotary = b.Path+".mixer", b.Path+".mixer", false
		b.MLP, b.MLPBefore.Path = workloads.MLP{}, b.Before.Path
		switch kind {
		case keepsState:
			b.Scan = c.scan(b, "mixer")
		case attends:
		case isMLP, isMoE:
			b.Before, b.Attention, b.MLP = workloads.Norm{}, workloads.Attention{}, m
		}
		return nil
	}
}

// nemotronExperts are plain, and may have columns of their own.
func nemotronExperts(c *config, d *workloads.Decoder, b *workloads.Block, i int64) error {
	kind, err := c.blockType(i, keepsState)
	if err != nil || kind != isMoE {
		return err
	}
	if err := experts(routed{router: "gate", shared: "shared_experts", correction: true}, allSparse)(c, d, b, i); err != nil {
		return err
	}
	e := b.MLP.Experts
	e.Plain, e.Latent, e.Shared.Width = true, or(c.LatentFFN), c.SharedExperts
	return nil
}

// sharedMLP is Granite's perceptron of all tokens, beside experts or alone.
func sharedMLP(c *config, d *workloads.Decoder, b *workloads.Block, i int64) error {
	all := b.MLP
	all.Path, all.Width = b.Path+".shared_mlp", c.SharedWidth
	all.Fused, all.Down = workloads.Linear{Name: "input_linear"}, workloads.Linear{Name: "output_linear"}
	if c.experts() == 0 {
		b.MLP = all
		return nil
	}
	if err := experts(routed{path: "block_sparse_moe", router: "router"}, allSparse)(c, d, b, i); err != nil {
		return err
	}
	if c.SharedWidth > 0 {
		b.MLP.Experts.Shared = &all
	}
	return nil
}

// scanNames are those of families whose layers are named as Mamba's.
func scanNames(root string, end string) names {
	n := plainNames("up_proj", "down_proj")
	n.table, n.norm, n.blocks, n.before, n.attention, n.mlp = root+".embeddings", root+"."+end, root+".layers", "norm", "mixer", "mixer"
	return n
}
