package onnx

import (
	"slices"

	"placer/graph"
	"placer/units"
)

// known is a tensor that is there before the step: a constant of the file, or what
// nodes make of constants and shapes alone. The op that holds it is added when
// something reads it.
type known struct {
	tensor *tensor
	name   string   // of its op
	of     string   // the tensor that it is a view of; empty: it has its own memory
	roots  []string // weights that it is computed from
	folded bool     // a node that would run computes it
}

// fold records the outputs of c's node as constants and reports whether they are: the
// node reads constants alone, or what it makes is known already because it reads shapes
// alone. What is random or unknown, has a body, or would be learned is left in the step.
func (imp *importer) fold(c *call, reads []string) bool {
	n := c.node
	key := n.key()
	_, ruled := rules[key]
	_, random := randomRules[key]
	if !ruled || random || len(c.out) == 0 || imp.cfg.Training && key == "Dropout" {
		return false
	}
	made := key == "Constant"
	var roots []string
	if !made && !c.shapeArithmetic() {
		if len(reads) == 0 {
			return false
		}
		for _, name := range reads {
			if name != "" && !imp.isConstant(name) {
				return false
			}
			roots = append(roots, imp.rootsOf(name)...)
		}
		slices.Sort(roots)
		roots = slices.Compact(roots)
	}
	for _, t := range c.out {
		if !t.elem.known() && t.elem != elemNone {
			return false
		}
	}
	// A weight that is quantised stays so: what reads it reads 8 bits.
	if dequantizes[key] && imp.small(n.in[0]) {
		return false
	}
	if imp.cfg.Training && len(roots) > 0 {
		return false
	}
	if !made {
		imp.sum.Folded++
	}
	for k, name := range n.out {
		if name == "" {
			continue
		}
		t := c.out[k]
		x := &known{tensor: t, name: name, roots: roots, folded: !made}
		if len(n.out) == 1 && clean(n.name) != "" {
			x.name = n.name
		}
		if imp.weight(name, t.elem, t.elements()) && (made && !t.value.uniform() || key == "ConstantOfShape") {
			x.roots, x.folded = []string{name}, false
			if key == "ConstantOfShape" { // how some files write weights
				imp.sum.Folded--
			}
		}
		if imp.learned[name].statistic && key == "ConstantOfShape" {
			x.folded = false
			imp.sum.Folded--
		}
		if f, _ := graph.FactsOf(c.kind); f.Fuse == graph.FuseView && len(reads) > 0 && imp.isConstant(reads[0]) && imp.sizeOf(reads[0]) == t.elem.bytes(t.elements()) {
			x.of = reads[0]
		}
		imp.constants[name] = x
	}
	return true
}

// isConstant reports whether the named tensor is known before the step.
func (imp *importer) isConstant(name string) bool {
	return imp.constants[name] != nil || imp.inits[name] != nil && imp.root.tensors[name].elem.known()
}

// rootsOf returns the weights that the named constant is computed from.
func (imp *importer) rootsOf(name string) []string {
	if k := imp.constants[name]; k != nil {
		return k.roots
	}
	if x := imp.inits[name]; x != nil && imp.weight(name, elem(x.elem), product(x.dims)) {
		return []string{name}
	}
	return nil
}

// sizeOf returns the bytes of the elements of the named tensor.
func (imp *importer) sizeOf(name string) units.Bytes {
	t := imp.root.tensors[name]
	return t.elem.bytes(t.elements())
}

// addConstant adds the op that holds k, or finds the one that k is a view of.
func (imp *importer) addConstant(name string, k *known) error {
	if !k.tensor.elem.known() {
		return nil
	}
	if k.of != "" {
		id, ok, err := imp.use(k.of)
		if ok {
			imp.ids[name] = id
		}
		return err
	}
	size := k.tensor.elem.bytes(k.tensor.elements())
	if k.folded {
		imp.sum.FoldedBytes += size
	}
	imp.hold(name, k.name, k.tensor, size, k.roots)
	return nil
}
