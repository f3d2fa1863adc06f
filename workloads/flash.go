package workloads

import (
	"fmt"

	"placer/graph"
)

// Scores says what becomes of the scores of attention, a number for each pair of a query and a
// key.
type Scores uint8

// What becomes of scores.
const (
	// OneKernel keeps them on the chip: attention is one kernel, as FlashAttention is.
	OneKernel Scores = iota
	// Products stores them: attention is a product, a softmax and a product.
	Products
)

var scoresNames = [...]string{"kernel", "products"}

func (s Scores) String() string { return scoresNames[s] }

// ParseScores reads a name that String prints.
func ParseScores(text string) (Scores, error) {
	for k, name := range scoresNames {
		if name == text {
			return Scores(k), nil
		}
	}
	return 0, fmt.Errorf("want %s or %s", scoresNames[0], scoresNames[1])
}

// attends is the setting of families whose attention may be one kernel.
func (c *common) attends() setting { return setting{name: "attention", to: &c.scores} }

// heads gives x, [B*S,heads*D], as [B,heads,S,D]: a copy where products read it; the kernel of
// attention reads heads where they lie.
func (n *net) heads(x tensor, s Scores, batch, tokens, heads int64) tensor {
	d := n.dim(x, -1) / heads
	if s == OneKernel {
		return n.reshape(x, batch, heads, tokens, d)
	}
	return n.transpose(n.reshape(x, batch, tokens, heads, d), 0, 2, 1, 3)
}

// joined undoes heads: x, [B,heads,S,D], as [B*S,heads*D].
func (n *net) joined(x tensor, s Scores) tensor {
	d := n.shape(x)
	if s == Products {
		x = n.transpose(x, 0, 2, 1, 3)
	}
	return n.reshape(x, d[0]*d[2], d[1]*d[3])
}

// flash is attention in one kernel of queries q, [B,H,S,D], keys k, [B,G,K,D], and values v,
// [B,G,K,V], of which H/G queries share one: [B,H,S,V], and the logarithm of the sum of each
// row's exponentials, which gradients read. In causal attention queries are the last tokens.
func (n *net) flash(q, k, v tensor, causal bool) tensor {
	s, group, keys := n.shape(q), n.dim(k, 1), n.dim(k, 2)
	seen := keys
	if causal {
		seen = graph.Seen(s[2], keys-s[2], 0)
	}
	m := graph.Attending{Heads: s[0] * group, Queries: s[1] / group * s[2], Seen: seen, KeyDim: s[3], ValueDim: n.dim(v, 3)}.Forward()
	sums := graph.Tensor{DType: graph.F32, Shape: graph.Shape{s[0], s[1], s[2]}, Bytes: graph.Auto}
	i := n.add("Attention", graph.Attention, []tensor{q, k, v}, n.of(s[0], s[1], s[2], n.dim(v, 3)), sums)
	o := n.b.At(i)
	o.GEMM, o.FLOPs = m, m.FLOPs()
	return n.b.Output(i, 0)
}
