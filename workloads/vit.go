package workloads

import (
	"errors"
	"fmt"

	"placer/graph"
	"placer/graph/train"
)

// ViTConfig describes a vision transformer (Dosovitskiy et al., An Image is
// Worth 16x16 Words).
type ViTConfig struct {
	Layers  int
	Hidden  int
	Heads   int // divides Hidden
	FFN     int
	Batch   int
	Size    int // height and width of the images
	Patch   int // divides Size
	Classes int
	DType   graph.DType
	Train   train.Config
}

// DefaultViT returns the sizes of ViT-B/16.
func DefaultViT() ViTConfig {
	return ViTConfig{Layers: 12, Hidden: 768, Heads: 12, FFN: 3072, Batch: 64, Size: 224, Patch: 16, Classes: 1000,
		DType: graph.BF16, Train: train.Config{Optimizer: train.Adam, StaticShapes: true, ClipGlobalNorm: true}}
}

// Validate reports every fault of c.
func (c ViTConfig) Validate() error {
	errs := []error{between("layers", c.Layers, 1, 1024), between("hidden", c.Hidden, 1, 1<<18), between("heads", c.Heads, 1, 1<<12),
		between("ffn", c.FFN, 1, 1<<20), between("batch", c.Batch, 1, 1<<16), between("size", c.Size, 1, 1<<14), between("patch", c.Patch, 1, 1<<12),
		between("classes", c.Classes, 2, 1<<20), floatType(c.DType), c.Train.Validate()}
	if c.Heads > 0 && c.Hidden%c.Heads != 0 {
		errs = append(errs, fmt.Errorf("hidden is %d, want a multiple of the %d heads", c.Hidden, c.Heads))
	}
	if c.Patch > 0 && c.Size%c.Patch != 0 {
		errs = append(errs, fmt.Errorf("size is %d, want a multiple of the patch, %d", c.Size, c.Patch))
	}
	return errors.Join(errs...)
}

// ViT returns the training graph of c. Layer l of the model is layer l; the
// patches belong to the first, the classifier to the last.
func ViT(c ViTConfig) (*graph.Graph, error) { return c.generate("vit") }

// Build returns ViT(c).
func (c ViTConfig) Build() (*graph.Graph, error) { return ViT(c) }

func (c ViTConfig) generate(name string) (*graph.Graph, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("vit: %w", err)
	}
	n := newNet(name, c.DType)
	n.dynamic = !c.Train.StaticShapes
	c.forward(n)
	return n.training(c.Train)
}

func vitSpecs() []Spec {
	c := DefaultViT()
	return []Spec{{Name: "vit", Family: "vit", Layers: c.Layers, Note: "the sizes of ViT-B/16, bf16, batch 64", params: c}}
}

func (c ViTConfig) forward(n *net) {
	batch, size, p, d := int64(c.Batch), int64(c.Size), int64(c.Patch), int64(c.Hidden)
	patches := (size / p) * (size / p)
	tokens := patches + 1
	var x tensor // [B*S,d]
	n.within("patches", 1, func() {
		images := n.placeholder("images", n.of(batch, size, size, 3))
		y := n.bias(n.conv2d(images, n.variable("weights", p, p, 3, d), p, valid), n.variable("biases", d))
		y = n.reshape(y, batch, patches, d)
		class := n.op("Tile", n.of(batch, 1, d), n.variable("class", 1, 1, d), n.vector(3))
		y = n.binary("Add", n.concat(1, class, y), n.variable("positions", 1, tokens, d))
		x = n.reshape(y, batch*tokens, d)
	})
	for l := range c.Layers {
		n.within(layerName(l+1), l+1, func() {
			y := n.norm(x)
			n.within("attention", l+1, func() { y = c.attend(n, y, batch, tokens) })
			x = n.binary("Add", x, y)
			y = n.norm(x)
			n.within("ffn", l+1, func() { y = n.dense(n.unary("Gelu", n.dense(y, int64(c.FFN))), d) })
			x = n.binary("Add", x, y)
		})
	}
	n.within("classifier", c.Layers, func() {
		first := n.slice(n.reshape(n.norm(x), batch, tokens, d), batch, d)
		logits := n.cast(n.dense(first, int64(c.Classes)), graph.F32)
		n.mean(n.crossEntropy(logits, n.placeholder("labels", ints(batch))))
	})
}

// attend is attention among all tokens of an image, x of [B*S,d].
func (c ViTConfig) attend(n *net, x tensor, batch, tokens int64) tensor {
	d, heads := int64(c.Hidden), int64(c.Heads)
	split := func(t tensor) tensor { // [B,heads,S,D]
		return n.transpose(n.reshape(t, batch, tokens, heads, d/heads), 0, 2, 1, 3)
	}
	qkv := n.split(n.dense(x, 3*d), 1, 3)
	score := n.batchMatmul(split(qkv[0]), split(qkv[1]), true)
	y := n.batchMatmul(n.softmax(n.binary("Mul", score, n.scalar())), split(qkv[2]), false)
	return n.dense(n.reshape(n.transpose(y, 0, 2, 1, 3), batch*tokens, d), d)
}

// dense is a product with a trained matrix and a trained bias.
func (n *net) dense(x tensor, out int64) tensor {
	return n.bias(n.matmul(x, n.variable("weights", n.dim(x, 1), out)), n.variable("biases", out))
}

// norm is layer normalisation of x, [R,d], as one kernel, which saves mean and
// 1/deviation of each row.
func (n *net) norm(x tensor) tensor {
	rows, d := n.dim(x, 0), n.dim(x, 1)
	in := []tensor{x, n.variable("gamma", d), n.variable("beta", d)}
	op := n.add("LayerNormalization", "LayerNormalization", in, n.like(x), n.of(rows, 1), n.of(rows, 1))
	return n.b.Output(op, 0)
}
