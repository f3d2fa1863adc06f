package decoder

import (
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/workloads"
)

// defaultSeq is how many tokens a prefill has where nobody says.
const defaultSeq = 512

// kernels is the name of how many kernels attention is: one, or three that store its scores.
const kernels = "attention_kernels"

// cacheBits is the name of how many bits a number of keys and values is kept in: 8, or 16 as the
// model's own type has.
const cacheBits = "cache_bits"

// Imported is a step of a model.
type Imported struct {
	Graph   *graph.Graph
	Weights int // tensors that the file lists
	Notes   []string
	// Dims are the names of what the file leaves open; UnknownDims those of the caller's
	// that are none of them.
	Dims, UnknownDims []string
}

// Options say which step of a model is read.
type Options struct {
	Dims map[string]int64 // sizes that the file leaves open, by name
	// Training says that a training step is derived from it: it ends with the loss of every
	// token's logits, not with the logits of the last.
	Training bool
	cached8  bool // keys and values are kept in 8 bits where Dims do not say
}

// step returns the step of d that o describes.
func step(d *workloads.Decoder, name string, o Options, open ...string) (*Imported, error) {
	dims := o.Dims
	x := &Imported{Dims: append([]string{kernels, "batch", cacheBits, "past", "seq"}, open...)}
	s := workloads.Serving{Batch: 1, Seq: defaultSeq, Training: o.Training}
	for key, to := range map[string]*int64{"batch": &s.Batch, "seq": &s.Seq, "past": &s.Past} {
		if n, ok := dims[key]; ok {
			*to = n
		}
	}
	switch n, ok := dims[kernels]; {
	case n == 3:
		s.Scores = workloads.Products
	case ok && n != 1:
		return nil, fmt.Errorf("%s is %d, want 1, or 3: a product, a softmax and a product", kernels, n)
	}
	switch n, ok := dims[cacheBits]; {
	case ok && n == 8 || !ok && o.cached8:
		s.Kept = graph.F8
	case ok && n != 16:
		return nil, fmt.Errorf("%s is %d, want 8 or 16", cacheBits, n)
	}
	for key := range dims {
		if !slices.Contains(x.Dims, key) {
			x.UnknownDims = append(x.UnknownDims, key)
		}
	}
	slices.Sort(x.UnknownDims)
	base := foreign.GraphName(name)
	for _, ending := range []string{".gguf", ".safetensors"} {
		base = strings.TrimSuffix(base, ending)
	}
	var err error
	if x.Graph, err = d.Step(foreign.Clean(base), s); err != nil {
		return nil, err
	}
	what := "prefill"
	if s.Training {
		what = "training step"
	} else if s.Past > 0 && s.Seq == 1 {
		what = "decoding step"
	}
	x.Notes = []string{fmt.Sprintf("a %s: batch %d, seq %d, past %d; other sizes by --dim", what, s.Batch, s.Seq, s.Past)}
	return x, nil
}
