package placer

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
	"placer/plan"
	"placer/sim"
)

// decoder turns decisions per unit into plans. A decision holds, for the tasks
// there are and in this order: a device per unit; a level of scheduling priority
// per unit; a level of fusion priority per unit and kind. It does not change once
// made, so goroutines may share it; what a goroutine writes to is a draft.
type decoder struct {
	tasks plan.Tasks
	part  *unit.Partition
	// lead gives, for each unit, the unit whose choices of fusion hold for it; nil:
	// its own. The first stage has one for all.
	lead []int32

	device   []uint8 // [N] given, where placement is not decided
	priority []int32 // [N] the scheduler, where scheduling is not decided
	fusion   []uint8 // [N] given, where fusion is not decided

	// order lists the ops by the scheduler that levels refine.
	order []int32 // [N]
	shift []int32 // [levels] places that ops of a level move down the order
	kind  []uint8 // [N] fusion kind; noKind where a fusion priority changes nothing
	kinds int     // with no fusion: 0
	level int     // levels of fusion priority
	// class, if not nil, has ops decide on fusion by class, wherever they are; each
	// class has one of the choices of kinds that units have, the same for all.
	class *classes
	slot  []int32  // [C] of a class: unit kinds + kind
	plain *classes // of stages that have none of their own
}

// noKind marks ops that are never fused with what reads them.
const noKind = 255

// draft is a plan that a goroutine writes decisions into.
type draft struct {
	device   []uint8 // [N]
	priority []int32 // [N]; nil: FIFO
	fusion   []uint8 // [N]; nil: none
	count    []int32 // scratch of the order
}

// newDecoder returns a decoder for p by the levels and kinds of c. Units come
// with decideOn.
func newDecoder(p *plan.Problem, c PolicyConfig) *decoder {
	d := &decoder{device: p.Device, priority: p.Priority, fusion: p.Fusion, level: c.FusionLevels}
	for _, t := range []plan.Tasks{plan.Place, plan.Schedule, plan.Fuse} {
		if p.Decides(t) {
			d.tasks |= t
		}
	}
	n := p.Graph.NumOps()
	if d.tasks.Has(plan.Schedule) {
		rank := p.Priority
		if rank == nil {
			rank = sim.CriticalPathPriority(p.Graph, p.Evaluator.OpSeconds(0))
		}
		d.order = make([]int32, n)
		for i, r := range rank {
			d.order[r] = int32(i)
		}
		middle := float64(c.ScheduleLevels-1) / 2
		for l := range c.ScheduleLevels {
			x := 0.0
			if middle > 0 {
				x = (float64(l) - middle) / middle
			}
			// Steps grow outwards: small changes of order and large ones.
			d.shift = append(d.shift, int32(x*max(x, -x)*c.ScheduleShift*float64(n)))
		}
	}
	if d.tasks.Has(plan.Fuse) {
		if c.decidesByClass(d.tasks) {
			d.class = newClasses(p.Graph, p.Evaluator.OpSeconds(0), c.Classes.Most)
			d.plain = d.class
		} else {
			d.kind, d.kinds = fusionKinds(p.Graph, p.Evaluator.OpSeconds(0), c.FusionKinds)
		}
	}
	return d
}

// fusionKinds deals the ops that may be fused with their readers out to at most
// most kinds: the op kinds that take most time, launches included, one each, and
// the others the last. An op kind is what decides how well an op fuses: what it
// costs to read and write again, and whether others can join it.
func fusionKinds(g *graph.Graph, seconds []float64, most int) (kind []uint8, kinds int) {
	able := fuse.NewRules(g).Able()
	mean := 0.0
	for _, i := range able {
		mean += seconds[i] / float64(len(able))
	}
	weight := map[graph.Kind]float64{}
	var names []graph.Kind
	for _, i := range slices.Sorted(slices.Values(able)) {
		k := g.Op(graph.OpID(i)).Kind
		if weight[k] == 0 {
			names = append(names, k)
		}
		weight[k] += seconds[i] + mean
	}
	slices.SortStableFunc(names, func(a, b graph.Kind) int { return cmp.Compare(weight[b], weight[a]) })
	kind = slices.Repeat([]uint8{noKind}, g.NumOps())
	for _, i := range able {
		kind[i] = uint8(min(slices.Index(names, g.Op(graph.OpID(i)).Kind), most-1))
	}
	return kind, max(1, min(len(names), most))
}

// newDraft returns a draft that holds what is given.
func (d *decoder) newDraft(n int) *draft {
	w := &draft{device: make([]uint8, n), priority: d.priority, fusion: d.fusion}
	copy(w.device, d.device)
	if d.tasks.Has(plan.Schedule) {
		w.priority = make([]int32, n)
	}
	if d.tasks.Has(plan.Fuse) {
		w.fusion = make([]uint8, n)
	}
	return w
}

// decode writes the plan of the decisions action into w.
func (d *decoder) decode(action []int32, w *draft) {
	n := d.part.NumUnits()
	if d.tasks.Has(plan.Place) {
		for i, u := range d.part.Of {
			w.device[i] = uint8(action[u])
		}
		action = action[n:]
	}
	if d.tasks.Has(plan.Schedule) {
		d.schedule(action[:n], w)
		action = action[n:]
	}
	if d.tasks.Has(plan.Fuse) {
		if d.class != nil {
			for i, c := range d.class.of {
				if c >= 0 {
					w.fusion[i] = uint8(action[d.slot[c]])
				}
			}
			return
		}
		for i, u := range d.part.Of {
			if d.lead != nil {
				u = d.lead[u]
			}
			if k := d.kind[i]; k != noKind {
				w.fusion[i] = uint8(action[int(u)*d.kinds+int(k)])
			}
		}
	}
}

// schedule moves each op down the order by the places that its unit's level says,
// or up, and writes the rank it comes to: ops of equal places keep their order.
func (d *decoder) schedule(level []int32, w *draft) {
	low, high := slices.Min(d.shift), slices.Max(d.shift)
	n := len(d.order)
	size := n + int(high-low) + 1
	if cap(w.count) < size {
		w.count = make([]int32, size)
	}
	count := w.count[:size]
	clear(count)
	for place, i := range d.order {
		count[int32(place)+d.shift[level[d.part.Of[i]]]-low]++
	}
	at := int32(0)
	for k, c := range count {
		count[k], at = at, at+c
	}
	for place, i := range d.order {
		k := int32(place) + d.shift[level[d.part.Of[i]]] - low
		w.priority[i] = count[k]
		count[k]++
	}
}

// idle clears, in advantages of the choices of a decision, those of choices that
// decide nothing: fusion of units that follow another's, and what no class has.
func (d *decoder) idle(perChoice []float32) {
	if d.kinds == 0 || d.class == nil && d.lead == nil {
		return
	}
	choices := perChoice[len(perChoice)-d.part.NumUnits()*d.kinds:]
	if d.class != nil {
		kept := make([]float32, len(d.slot))
		for c, k := range d.slot {
			kept[c] = choices[k]
		}
		clear(choices)
		for c, k := range d.slot {
			choices[k] = kept[c]
		}
		return
	}
	for u, l := range d.lead {
		if int(l) != u {
			clear(choices[u*d.kinds : (u+1)*d.kinds])
		}
	}
}
