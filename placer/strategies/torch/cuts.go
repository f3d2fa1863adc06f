package torch

import (
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
	ops   map[string][]graph.OpID // of the forward pass, by module
	// parted are the sizes of parts of columns that are cut each by itself, by module.
	parted map[string][]int64
}

// cut says in f which modules ranks share out, and which work by rows.
func (f *File) cut(m *strategy.Model, s strategy.Strategy) error {
	c := &cuts{g: m.Micro, split: strategy.FindSplit(m, s), m: m, ranks: int64(s.Tensor), ops: map[string][]graph.OpID{}, parted: map[string][]int64{}}
	for i := range graph.OpID(c.g.NumOps()) {
		if o := c.g.Op(i); o.Phase == graph.Forward && !m.Once(i) {
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
		if list := lists[role]; !slices.Contains(*list, c.g.Op(i).Module) {
			*list = append(*list, c.g.Op(i).Module)
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
	if own := strings.TrimPrefix(o.Module+".weight", "."); c.g.Op(p).Name != own && role != strategy.OutputProduct && role != strategy.TableLookup {
		return fmt.Errorf("%s multiplies %s there, so it is no nn.Linear", o.Name, c.g.Op(p).Name)
	}
	if role != strategy.TableLookup && c.g.Tensor(weight).Producer == p {
		return fmt.Errorf("its weight %s has a row for each input, so it is no nn.Linear", c.g.Op(p).Name)
	}
	for _, v := range c.ops[o.Module] {
		r, _ := c.split.Role(v)
		if k := c.g.Op(v).Kind; r != role && k.Class() != graph.ClassMeta && k != "AddV2" && k != "Cast" {
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
