package onnxcut

// homes returns the stages that each node is in, ascending, and how many stages there are. A
// node is in one stage, no earlier than what it reads. One that stage has no number for is
// where what it reads is, or, where it depends on weights and constants alone, in every stage
// that reads what it makes.
func (m *model) homes(stage func(*Node) int) (in [][]int, count int) {
	by := map[string]int{} // the node that makes a tensor
	for i := range m.nodes {
		for _, t := range m.nodes[i].Outputs {
			if t != "" {
				by[t] = i
			}
		}
	}
	in = make([][]int, len(m.nodes))
	constant := make([]bool, len(m.nodes))
	for i := range m.nodes {
		n := &m.nodes[i]
		at := stage(n)
		constant[i] = at < 0
		at = max(at, 0)
		for _, t := range n.reads {
			k, made := by[t]
			if made && k < i && !constant[k] {
				at = max(at, in[k][0])
			}
			constant[i] = constant[i] && (made && k < i && constant[k] || !made && (t == "" || m.inputs[t] == nil))
		}
		if !constant[i] {
			in[i] = []int{at}
			count = max(count, at+1)
		}
	}
	count = max(count, 1)
	wanted := make([]map[int]bool, len(m.nodes))
	for i := len(m.nodes) - 1; i >= 0; i-- { // a node stands behind what it reads
		if constant[i] {
			for s := range count {
				if wanted[i][s] {
					in[i] = append(in[i], s)
				}
			}
			if in[i] == nil { // an output of the model, or nothing's
				in[i] = []int{0}
			}
		}
		for _, t := range m.nodes[i].reads {
			k, made := by[t]
			if !made || !constant[k] {
				continue
			}
			if wanted[k] == nil {
				wanted[k] = map[int]bool{}
			}
			for _, s := range in[i] {
				wanted[k][s] = true
			}
		}
	}
	return in, count
}
