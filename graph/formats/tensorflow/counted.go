package tensorflow

import (
	funcpb "github.com/wamuir/graft/tensorflow/core/framework/function_go_proto"
	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
)

// counter is a variable of a loop that each iteration adds a constant to.
type counter struct{ start, step int64 }

// counted returns how often a loop runs whose condition compares a counter with a known
// limit, or where it joins several conditions, the fewest iterations that one of them
// allows; and the loop's counters, by argument. 0, false where no limit is known.
func (imp *importer) counted(called []string, in []output) (trips int64, counters map[int]counter, known bool) {
	if len(called) != 2 || imp.funcs[called[0]] == nil || imp.funcs[called[1]] == nil {
		return 0, nil, false
	}
	cond, body := imp.bodyOf(called[0]), imp.bodyOf(called[1])
	counters, same := map[int]counter{}, map[int]bool{}
	for k, a := range body.def.GetSignature().GetOutputArg() {
		if k >= len(in) {
			return 0, nil, false
		}
		from := body.origin(body.def.Ret[a.Name])
		if j, ok := body.argument(from); ok {
			same[k] = j == k
			continue
		}
		n := body.node[from.node]
		if n == nil || n.Op != "AddV2" && n.Op != "Add" || len(n.Input) < 2 || len(in[k].value) != 1 {
			continue
		}
		for side := range 2 {
			j, ok := body.argument(body.origin(n.Input[side]))
			if step, constant := body.scalar(body.origin(n.Input[1-side])); ok && j == k && constant && step > 0 {
				counters[k] = counter{in[k].value[0], step}
			}
		}
	}
	limitOf := func(r reference) (int64, bool) {
		if j, ok := cond.argument(r); ok {
			return first(in[j].value), same[j] && len(in[j].value) == 1
		}
		return cond.scalar(r)
	}
	results := cond.def.GetSignature().GetOutputArg()
	if len(results) != 1 {
		return 0, nil, false
	}
	todo := []reference{cond.origin(cond.def.Ret[results[0].Name])}
	for k := 0; k < len(todo) && k < maxNesting; k++ {
		n := cond.node[todo[k].node]
		if n == nil || len(n.Input) < 2 {
			continue
		}
		a, b := cond.origin(n.Input[0]), cond.origin(n.Input[1])
		switch n.Op {
		case "LogicalAnd":
			todo = append(todo, a, b)
		case "Less", "LessEqual":
			j, ok := cond.argument(a)
			c, counts := counters[j]
			limit, fixed := limitOf(b)
			if n.Op == "LessEqual" {
				limit++
			}
			if !ok || !counts || !fixed || limit > maxTrips || c.start < -maxTrips {
				continue
			}
			if m := max((limit-c.start+c.step-1)/c.step, 0); !known || m < trips {
				trips, known = m, true
			}
		}
	}
	return trips, counters, known
}

// countedOut sets the values of a loop's counters behind it.
func (imp *importer) countedOut(n *nodepb.NodeDef, called []string, in, outs []output) {
	if n.Op != "While" && n.Op != "StatelessWhile" {
		return
	}
	trips, counters, known := imp.counted(called, in)
	for k, c := range counters {
		if known && k < len(outs) && trips < maxTrips && c.step < 1<<20 {
			outs[k].value = []int64{c.start + trips*c.step}
		}
	}
}

func first(v []int64) int64 {
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

// routine is a function of the library with its nodes by name.
type routine struct {
	imp  *importer
	def  *funcpb.FunctionDef
	node map[string]*nodepb.NodeDef
	ops  map[string]string
	args map[string]int
}

func (imp *importer) bodyOf(name string) routine {
	f := routine{imp: imp, def: imp.funcs[name], node: map[string]*nodepb.NodeDef{}, ops: map[string]string{}, args: map[string]int{}}
	for _, n := range f.def.NodeDef {
		f.node[n.Name], f.ops[n.Name] = n, n.Op
	}
	for k, a := range f.def.GetSignature().GetInputArg() {
		f.args[a.Name] = k
	}
	return f
}

// origin returns what input names, behind nodes that pass it on.
func (f routine) origin(input string) reference {
	r := f.imp.refer(input, f.ops)
	for range maxNesting {
		n := f.node[r.node]
		if n == nil || n.Op != "Identity" || len(n.Input) == 0 {
			break
		}
		r = f.imp.refer(n.Input[0], f.ops)
	}
	return r
}

// argument returns the number of the argument that r is.
func (f routine) argument(r reference) (int, bool) {
	k, ok := f.args[r.node]
	return k, ok && f.node[r.node] == nil
}

// scalar returns the value of a constant of one integer.
func (f routine) scalar(r reference) (int64, bool) {
	n := f.node[r.node]
	if n == nil || n.Op != "Const" {
		return 0, false
	}
	v := constant(n.Attr["value"].GetTensor(), []int64{})
	return first(v), len(v) == 1
}
