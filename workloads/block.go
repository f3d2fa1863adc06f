package workloads

import (
	"fmt"

	"placer/graph"
)

// Block is a layer of a Decoder: attention, then a multilayer perceptron or a mixture of
// experts, each added to what it reads. Either may be missing, and has no path then.
type Block struct {
	Path      string
	Before    Norm // of what attention reads
	Attention Attention
	Delta     *Delta // in the place of Attention
	Scan      *Scan  // in the place of Attention
	After     Norm   // of what attention gives
	MLPBefore Norm
	MLP       MLP
	MLPAfter  Norm
	Beside    *Beside
	PerLayer  *PerLayer
	// Parallel blocks add both to the block's input; without MLPBefore the perceptron
	// reads what attention reads.
	Parallel bool
	Scaled   bool // what is added is multiplied by a number
}

// Beside is a mixture beside a block's perceptron: both read what the perceptron's norm reads,
// each behind a norm of its own, and are added up before MLPAfter.
type Beside struct {
	Before, After Norm // of the mixture
	MLPAfter      Norm // of the perceptron alone
	MLP           MLP  // the mixture
}

// PerLayer adds to a block's result what a token's embedding for that layer says, through a gate.
type PerLayer struct {
	Gate, Projection Linear
	Activation       graph.Kind
	After            Norm
}

// Norm is a normalisation over the last dimension; its zero value is none.
type Norm struct {
	Path string
	Kind graph.Kind // "RMSNorm", "LayerNormalization"; "" for none
	Dims []int64    // of its weight; nil for none
	Bias bool       // of the same dimensions
}

// Linear is a linear layer by its name within a module.
type Linear struct {
	Name string
	Bias bool
}

// Attention is causal attention: of heads, or latent.
type Attention struct {
	Path             string
	Heads, KVHeads   int64 // queries, and keys and values
	KeyDim, ValueDim int64 // of a head
	Query, Key       Linear
	Value, Out       Linear // values without a name are the product of keys
	Fused            Linear // one product for queries, keys and values in place of three
	// Norms of queries and keys: with as many weights as all heads have columns before
	// they are divided among heads, of each head with others.
	QueryNorm, KeyNorm Norm
	ValueNorm          Norm
	Reuse              bool  // keys and values are those of the last layer with a window, or without, that has its own
	Gated              bool  // queries have as many columns more, whose sigmoids multiply the result
	Rotary             bool  // positions turn queries and keys
	Window             int64 // each token sees as many, itself among them; 0: all
	Capped             bool  // a hyperbolic tangent bounds the scores
	Sinks              bool  // a trained score of each head that no value has
	Latent             *Latent
}

// Latent is multi-head latent attention (DeepSeek-AI, arXiv:2405.04434): keys and values are
// kept as one vector of Rank for all heads, beside Rope columns of keys that positions turn.
type Latent struct {
	QueryRank int64 // of queries; 0: they are not compressed
	Rank      int64
	Rope      int64
	Bias      bool // of what compresses
	QueryNorm Norm
	Norm      Norm
	Index     *Index
}

// MLP is a multilayer perceptron, gated or plain, or a mixture of them.
type MLP struct {
	Path       string
	Width      int64
	Activation graph.Kind
	Gate       Linear // without a name: there is no gate
	Up, Down   Linear
	Fused      Linear // one product for gate and up in place of two
	Experts    *Experts
}

// Experts is a mixture: each token goes to PerToken of Count gated perceptrons, whose weights
// are stacked in gate_up_proj and down_proj, or of plain ones in up_proj and down_proj.
type Experts struct {
	Path            string
	Count, PerToken int64
	Width           int64
	Activation      graph.Kind
	Bias            bool
	Plain           bool
	Latent          int64 // columns that tokens have within, 0: their own; by fc1_latent_proj and fc2_latent_proj
	Router          Linear
	Scaled          bool   // numbers scale what the router reads, and what each expert gives
	Correction      bool   // the router adds a number to each expert's score
	Statics         string // the module within the router that trains them; "": none does
	Shared          *MLP   // that every token goes to
	SharedGate      Linear // of its output
}

// attends reports whether the block has attention.
func (b *Block) attends() bool { return b.Delta == nil && b.Scan == nil && b.Attention.Path != "" }

func (b *Block) validate() error {
	sizes := b.MLP.sizes()
	if b.Beside != nil {
		sizes = append(sizes, b.Beside.MLP.sizes()...)
	}
	switch {
	case b.Delta != nil:
		sizes = append(sizes, b.Delta.sizes()...)
	case b.Scan != nil:
		sizes = append(sizes, b.Scan.sizes()...)
	case b.attends():
		sizes = append(sizes, b.Attention.sizes()...)
	}
	for _, s := range sizes {
		if err := s.check(); err != nil {
			return err
		}
	}
	switch a, t := &b.Attention, b.Delta; {
	case t != nil && t.ValueHeads%t.KeyHeads != 0:
		return fmt.Errorf("%d linear heads of values are no multiple of %d of keys", t.ValueHeads, t.KeyHeads)
	case b.attends() && a.Heads%a.KVHeads != 0:
		return fmt.Errorf("%d attention heads are no multiple of %d key and value heads", a.Heads, a.KVHeads)
	}
	return nil
}

func (a *Attention) sizes() []size {
	all := []size{{"attention heads", a.Heads, 1, 1 << 12}, {"key and value heads", a.KVHeads, 1, 1 << 12}, {"head size", a.KeyDim, 1, 1 << 14}, {"value size", a.ValueDim, 1, 1 << 14}, {"window", a.Window, 0, 1 << 30}}
	if t := a.Latent; t != nil {
		all = append(all, size{"latent columns", t.Rank, 1, 1 << 16}, size{"latent columns of queries", t.QueryRank, 0, 1 << 16}, size{"turned columns", t.Rope, 1, a.KeyDim})
		if x := t.Index; x != nil {
			all = append(all, size{"heads of the indexer", x.Heads, 1, 1 << 12}, size{"columns of the indexer", x.Dim, 1, 1 << 14}, size{"tokens that the indexer chooses", x.PerToken, 1, 1 << 30})
		}
	}
	return all
}

func (m *MLP) sizes() []size {
	if e := m.Experts; e != nil {
		all := []size{{"experts", e.Count, 1, 1 << 12}, {"experts a token", e.PerToken, 1, e.Count}, {"feed-forward size of an expert", e.Width, 1, 1 << 20}, {"latent columns of experts", e.Latent, 0, 1 << 18}}
		if e.Shared != nil {
			all = append(all, e.Shared.sizes()...)
		}
		return all
	}
	if m.Path == "" {
		return nil
	}
	return []size{{"feed-forward size", m.Width, 1, 1 << 20}}
}
