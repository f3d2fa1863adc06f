package onnxcut

// sizes returns the tensors that are computed from the shapes of others, so that how many
// numbers they have follows from ranks and not from sizes. Shape inference counts them: it
// fails on a Resize, a Reshape or a Slice whose sizes are computed from a vector of unknown
// length.
func (m *model) sizes() map[string]bool {
	known := map[string]bool{}
	for i := range m.nodes { // a node stands behind what it reads
		n := &m.nodes[i]
		switch n.op {
		case "Shape", "Constant":
		case "Cast", "Concat", "Slice", "Gather", "Unsqueeze", "Squeeze", "Identity", "Neg", "Abs", "Floor", "Ceil", "Round", "Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Where", "Equal", "Greater", "Less", "Not":
			all := true
			for _, t := range n.reads {
				all = all && (t == "" || known[t] || m.inits[t] != nil && m.inputs[t] == nil)
			}
			if !all {
				continue
			}
		default:
			continue
		}
		for _, t := range n.Outputs {
			known[t] = true
		}
	}
	return known
}
