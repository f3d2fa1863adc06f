package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats"
	"placer/graph/merge"
	"placer/placer/strategies"
	"placer/workloads"
)

// otherDim returns the dimension of --dim that has another number of samples than --batch,
// "" without one.
func (f *strategiesFlags) otherDim() string {
	for _, d := range batchDims {
		if n, ok := f.Dims[d]; ok && n != f.batch {
			return d
		}
	}
	return ""
}

// batchDims are the names by which graph files call the number of samples.
var batchDims = []string{"batch", "batch_size", "N"}

// batchDim returns the name of the open size of a graph file that is its number of samples,
// "" without one.
func batchDim(x formats.File) string {
	for _, d := range batchDims {
		if slices.Contains(x.Dims, d) {
			return d
		}
	}
	return ""
}

// family returns the graph that f names at any batch, and the batch of its step: batch,
// or where that is 0 what the graph has. seen, if not nil, is told of the file as it is read at
// that batch: others have the same remarks.
func (c *console) family(f *graphFlags, batch int64, seen func(loaded)) (strategies.Family, int64, error) {
	if f.Workload != "" {
		return workloadFamily(f.Workload, batch)
	}
	name, batch, err := c.openDim(f, batch)
	if err != nil {
		return nil, 0, err
	}
	if batch == 0 {
		return nil, 0, usagef("--batch: say how many samples a step has, or --dim %s=N", name)
	}
	return func(n int64) (*graph.Graph, error) {
		at := *f
		at.several, at.Dims = true, maps.Clone(f.Dims)
		if at.Dims == nil {
			at.Dims = map[string]int64{}
		}
		at.Dims[name] = n
		l, err := c.loadGraph(&at)
		if err == nil && (l.Times != nil || l.Seconds != nil) {
			err = strategies.ErrTimes
		}
		if err == nil && seen != nil && n == batch {
			seen(l)
		}
		return l.Graph, err
	}, batch, nil
}

// workloadFamily is family of a built-in workload.
func workloadFamily(name string, batch int64) (strategies.Family, int64, error) {
	given, err := workloads.Batch(name)
	if err != nil {
		return nil, 0, usage(err)
	}
	if batch == 0 {
		batch = given
	} else if err := workloads.CheckBatch(name, batch); err != nil {
		return nil, 0, usage(err)
	}
	return func(n int64) (*graph.Graph, error) { return workloads.BuildBatch(name, n) }, batch, nil
}

// openDim returns the name of the size that is the number of samples of f's file, and the
// batch: batch, or where that is 0 what --dim or the file says, 0 where neither does.
func (c *console) openDim(f *graphFlags, batch int64) (string, int64, error) {
	for _, d := range batchDims {
		if n, ok := f.Dims[d]; ok {
			return d, cmp.Or(batch, n), nil
		}
	}
	l, err := c.loadGraph(f)
	if err != nil {
		return "", 0, err
	}
	name := batchDim(l.file)
	if name == "" {
		return "", 0, fmt.Errorf("%s: no dimension named batch, batch_size or N is open, so its batch cannot be divided: %s", f.Graph, openBatch(l.file))
	}
	return name, cmp.Or(batch, l.file.Sizes[name]), nil
}

// openBatch says how to come to a file with an open batch from one like x, without.
func openBatch(x formats.File) string {
	switch x.Form.Name {
	case "ONNX":
		if len(x.Dims) > 0 {
			return "it leaves " + strings.Join(x.Dims, ", ") + " open; name the dimension that is the batch \"batch\""
		}
		return "export the model with an open batch (torch.onnx.export with dynamic_shapes)"
	case "GraphDef":
		return "save the model with a batch that its signature leaves open (model.export of Keras, tf.TensorSpec([None, ...])); such a SavedModel can be divided, with --train in training (docs/tensorflow.md)"
	case "HLO", "StableHLO":
		return "the sizes of a compiled function are fixed; an ONNX file of the model with an open batch (jax2onnx.to_onnx with an input (\"batch\", ...)) can be divided, with --train in training"
	}
	return "the sizes in such a file are fixed; of a PyTorch model 'python -m placer_torch capture' writes a file with an open batch (docs/pytorch.md), and an ONNX file with one can be divided, with --train in training"
}

// merged is f with products merged.
func merged(f strategies.Family, which merge.Which) strategies.Family {
	return func(batch int64) (*graph.Graph, error) {
		g, err := f(batch)
		if err != nil {
			return nil, err
		}
		return merge.Products(g, which)
	}
}
