package torchtrace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/internal/words"
	"placer/units"
)

// chrome is a trace in Chrome's form, as Kineto writes it.
type chrome struct {
	Events []event `json:"traceEvents"`
}

type event struct {
	Phase    string  `json:"ph"`
	Category string  `json:"cat"`
	Name     string  `json:"name"`
	Process  any     `json:"pid"`
	Thread   any     `json:"tid"`
	Start    float64 `json:"ts"`  // microseconds
	Duration float64 `json:"dur"` // microseconds
	Args     args    `json:"args"`
}

type args struct {
	External    float64 `json:"External id"`
	Correlation float64 `json:"correlation"`
}

// SniffKineto reports whether data is a Chrome trace of PyTorch's profiler.
func SniffKineto(data []byte) bool {
	return strings.Contains(string(data[:min(len(data), 1<<20)]), `"cpu_op"`) && foreign.HasKey(data, 12, "traceEvents")
}

// ImportKineto reads a trace with times. An op is an operator that launched kernels, its
// time that of the kernels; in a trace without any, an innermost operator with its own.
// Ops that ran on one stream, or one thread, follow each other: a trace names no tensors.
func ImportKineto(data []byte, name string) (*Imported, error) {
	return foreign.Import(data, name, func(f *chrome) (*Imported, error) { return f.graph(name) })
}

// timed is an operator with the time of its kernels.
type timed struct {
	*event
	line    string // the stream or thread
	seconds float64
	first   float64 // when its first kernel began
}

func (f *chrome) graph(name string) (*Imported, error) {
	x := &Imported{}
	var ops []*event
	launch := map[float64]*event{} // by correlation
	var kernels []*event
	for i := range f.Events {
		e := &f.Events[i]
		if e.Phase == "f" || e.Phase == "s" {
			if e.Category == "ac2g" {
				x.Edges++
			}
			continue
		}
		if e.Phase != "X" {
			continue
		}
		if !(e.Duration >= 0) || e.Duration > 1e12 || math.Abs(e.Start) > 1e18 {
			return nil, fmt.Errorf("event %d (%s): begins at %g and takes %g microseconds", i, foreign.Brief(e.Name), e.Start, e.Duration)
		}
		switch e.Category {
		case "cpu_op":
			ops = append(ops, e)
		case "cuda_runtime", "hip_runtime", "cuda_driver":
			launch[e.Args.Correlation] = e
		case "kernel", "gpu_memcpy", "gpu_memset":
			kernels = append(kernels, e)
		}
	}
	x.Nodes = len(ops)
	slices.SortStableFunc(ops, func(a, b *event) int {
		return cmp.Or(cmp.Compare(line(a), line(b)), cmp.Compare(a.Start, b.Start), cmp.Compare(b.Duration, a.Duration))
	})
	var list []*timed
	if len(kernels) > 0 {
		list = launched(ops, launch, kernels)
	} else {
		list = innermost(ops)
	}
	slices.SortStableFunc(list, func(a, b *timed) int { return cmp.Compare(a.first, b.first) })
	b := graph.NewBuilder(graphName(name))
	names, known := foreign.NewNames(), kinds()
	last := map[string]graph.OpID{}
	for _, o := range list {
		id := b.Op(graph.Op{Name: names.Take(strings.TrimPrefix(o.Name, "aten::")), Kind: kindOf(known, o.Name), Forward: graph.None}, nil)
		if before, ok := last[o.line]; ok {
			b.Control(before, id)
		}
		last[o.line] = id
		x.Seconds = append(x.Seconds, units.Seconds(o.seconds/1e6))
	}
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	x.Graph = g
	x.Notes = []string{fmt.Sprintf("a trace names no tensors: %s each other as on their %s, and moving one is free", words.Count(g.NumOps(), "op follows", "ops follow"), words.Count(len(last), "stream", "streams"))}
	return x, nil
}

func line(e *event) string { return fmt.Sprint(e.Process, "/", e.Thread) }

// launched returns the operators that launched kernels. The operator of a kernel is the
// innermost around the call that launched it.
func launched(ops []*event, launch map[float64]*event, kernels []*event) (list []*timed) {
	of := map[*event]*timed{}
	slices.SortStableFunc(kernels, func(a, b *event) int { return cmp.Compare(a.Start, b.Start) })
	lines := map[string][]*event{}
	for _, o := range ops {
		lines[line(o)] = append(lines[line(o)], o)
	}
	for _, k := range kernels {
		owner := k
		if call := launch[k.Args.Correlation]; call != nil {
			if o := around(lines[line(call)], call.Start); o != nil {
				owner = o
			}
		}
		t := of[owner]
		if t == nil {
			t = &timed{event: owner, line: line(k), first: k.Start}
			of[owner] = t
			list = append(list, t)
		}
		t.seconds += k.Duration
	}
	return list
}

// maxBack bounds how far back an enclosing operator is looked for.
const maxBack = 256

// around returns the innermost of ops, ordered by start, that is running at that time.
func around(ops []*event, at float64) *event {
	i, _ := slices.BinarySearchFunc(ops, at, func(o *event, at float64) int {
		if o.Start <= at {
			return -1
		}
		return 1
	})
	for k := i - 1; k >= 0 && k >= i-maxBack; k-- {
		if ops[k].Start+ops[k].Duration >= at {
			return ops[k]
		}
	}
	return nil
}

// innermost returns the operators in which no other runs; ops are ordered by thread and
// start.
func innermost(ops []*event) (list []*timed) {
	for i, o := range ops {
		if i+1 < len(ops) && line(ops[i+1]) == line(o) && ops[i+1].Start < o.Start+o.Duration {
			continue
		}
		list = append(list, &timed{o, line(o), o.Duration, o.Start})
	}
	return list
}
