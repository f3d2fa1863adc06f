package torch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/strategy"
)

// cuts finds the modules that ranks share out.
type cuts struct {
	g     *graph.Graph
	split *strategy.Split
	m     *strategy.Model
	ranks int64
	// staged reports whether there is a pipeline.
	staged bool
	ops    map[string][]graph.OpID // of the forward pass, by module
	// attentions are modules that hold an in_proj_weight, each an nn.MultiheadAttention.
	attentions map[string]bool
	// parted are the sizes of parts of columns that are cut each by itself, by module.
	parted map[string][]int64
}

// cut says in f which modules ranks share out, and which work by rows.
func (f *File) cut(m *strategy.Model, s strategy.Strategy) error {
	c := &cuts{g: m.Micro, split: strategy.FindSplit(m, s), m: m, ranks: int64(s.Tensor), staged: s.Pipeline > 1, ops: map[string][]graph.OpID{}, attentions: map[string]bool{}, parted: map[string][]int64{}}
	for i := range graph.OpID(c.g.NumOps()) {
		o := c.g.Op(i)
		if o.Params > 0 && o.Name == strings.TrimPrefix(o.Module+".in_proj_weight", ".") {
			c.attentions[o.Module] = true
		}
		if o.Phase == graph.Forward && !m.Once(i) {
			c.ops[o.Module] = append(c.ops[o.Module], i)
		}
	}
	lists := map[strategy.Role]*[]string{strategy.ColumnProduct: &f.Columns, strategy.RowProduct: &f.Rows, strategy.OutputProduct: &f.VocabularyColumns, strategy.TableLookup: &f.VocabularyRows}
	for i := range graph.OpID(c.g.NumOps()) {
		role, weight := c.split.Role(i)
		if role == strategy.NoRole {
			continue
		}
		if err := c.check(i, role, weight); err != nil {
			return fmt.Errorf("module %s: %w", name(c.g.Op(i).Module), err)
		}
		path := c.holder(i, weight)
		if role != strategy.TableLookup && c.transposed(weight) && !slices.Contains(f.Transposed, path) {
			f.Transposed = append(f.Transposed, path)
		}
		if list := lists[role]; !slices.Contains(*list, path) {
			*list = append(*list, path)
		}
	}
	if len(c.parted) > 0 {
		f.Parts = c.parted
	}
	if s.Sequence {
		return f.rows(c)
	}
	return nil
}

// name is how errors call a module.
func name(path string) string {
	if path == "" {
		return "of the model itself"
	}
	return path
}

// check reports why the module of op i, a product or a look-up that reads a weight, cannot be cut
// as its role says.
func (c *cuts) check(i graph.OpID, role strategy.Role, weight graph.TensorID) error {
	o := c.g.Op(i)
	p := parameter(c.m, weight)
	if p == graph.None {
		return fmt.Errorf("the weight of its product %s is computed", o.Name)
	}
	if c.attentions[o.Module] {
		return c.attention(i, role, p)
	}
	if own := strings.TrimPrefix(o.Module+".weight", "."); c.g.Op(p).Name != own && role != strategy.OutputProduct && role != strategy.TableLookup {
		return fmt.Errorf("%s multiplies %s there, so it is no nn.Linear", o.Name, c.g.Op(p).Name)
	}
	for _, v := range c.ops[o.Module] {
		r, _ := c.split.Role(v)
		scales := role == strategy.TableLookup && c.g.Op(v).Kind == "Mul" // as Gemma's tables do
		if k := c.g.Op(v).Kind; r != role && k.Class() != graph.ClassMeta && k != "AddV2" && k != "Cast" && k != "Transpose" && !scales {
			return fmt.Errorf("%s (%s) is in it beside %s, so it is no nn.Linear or nn.Embedding", c.g.Op(v).Name, k, o.Name)
		}
	}
	switch role {
	case strategy.ColumnProduct:
		first, _ := c.g.Outputs(i)
		parts, err := c.parts(first, o.GEMM.N)
		if len(parts) > 1 {
			c.parted[o.Module] = parts
		}
		return err
	case strategy.RowProduct:
		return c.inputs(i)
	}
	return nil
}

// attention reports why product i, of an nn.MultiheadAttention, cannot be cut: queries, keys and values
// are, each by its columns, and the rows of what they come to.
func (c *cuts) attention(i graph.OpID, role strategy.Role, weight graph.OpID) error {
	o := c.g.Op(i)
	first, _ := c.g.Outputs(weight)
	packed := strings.HasSuffix(c.g.Op(weight).Name, "in_proj_weight")
	switch {
	case c.staged:
		return errors.New("an nn.MultiheadAttention is not cut in a pipeline")
	case packed && role == strategy.ColumnProduct:
		c.parted[o.Module] = repeated(c.g.Tensor(first).Shape[0]/3, 3)
	case packed || role != strategy.RowProduct:
		return fmt.Errorf("%s is no product of an nn.MultiheadAttention that ranks share out", o.Name)
	}
	return nil
}

// holder returns the module that holds the weight of product i, which is another than the one it is
// in where an nn.MultiheadAttention multiplies by its out_proj's.
func (c *cuts) holder(i graph.OpID, weight graph.TensorID) string {
	module := c.g.Op(i).Module
	if p := parameter(c.m, weight); c.attentions[module] && p != graph.None {
		return c.g.Op(p).Module
	}
	return module
}

// transposed reports whether a product reads its parameter as it is, but for its type, so that it has
// a row for each input: an nn.Linear reads a view of it.
func (c *cuts) transposed(weight graph.TensorID) bool {
	i := c.g.Tensor(weight).Producer
	for c.g.Op(i).Kind == "Cast" {
		i = c.g.Tensor(c.g.Inputs(i)[0]).Producer
	}
	return i == parameter(c.m, weight)
}
