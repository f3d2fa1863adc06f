package rollout

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/unit"
	"placer/plan"
	"placer/sim"
)

// The choices that a unit has beside its device.
const (
	// scheduleLevels move a unit's ops along the order of the given scheduler, the
	// middle one not at all, the outermost by scheduleShift of all ops.
	scheduleLevels = 5
	scheduleShift  = 0.25
	// fusionLevels are fusion priorities; 0 fuses an op with none of its readers. A
	// unit has one for each of at most mostKinds kinds of ops.
	fusionLevels = 6
	mostKinds    = 16
)

// Head is one task in a decision: Kinds choices for each unit, each of one of
// Levels levels.
type Head struct {
	Task          plan.Tasks
	Kinds, Levels int
}

// Decoder turns decisions on units into plans. A decision holds, for the tasks that
// are decided and in this order: a device per unit; a level of scheduling priority
// per unit; a level of fusion priority per unit and kind. Goroutines may share a
// Decoder while On is not called.
type Decoder struct {
	Tasks plan.Tasks
	Units *unit.Partition // of the decisions; set by On

	oneFusion bool
	devices   int
	order     []int32 // [N] ops by the scheduler that levels refine
	shift     []int32 // [scheduleLevels] places that a level moves ops down the order
	kind      []uint8 // [N] fusion kind, or noKind
	kinds     int     // 0 where fusion is not decided
}

// noKind marks ops that are never fused with what reads them.
const noKind = 255

// NewDecoder returns a decoder for the tasks of p.
func NewDecoder(p *plan.Problem) *Decoder {
	d := &Decoder{devices: p.Machine.NumDevices()}
	for _, t := range []plan.Tasks{plan.Place, plan.Schedule, plan.Fuse} {
		if p.Decides(t) {
			d.Tasks |= t
		}
	}
	seconds := p.Evaluator.OpSeconds(0)
	if d.Tasks.Has(plan.Schedule) {
		rank := p.Priority
		if rank == nil {
			rank = sim.CriticalPathPriority(p.Graph, seconds)
		}
		d.order = make([]int32, len(rank))
		for i, r := range rank {
			d.order[r] = int32(i)
		}
		const middle = float64(scheduleLevels-1) / 2
		for l := range scheduleLevels {
			x := (float64(l) - middle) / middle
			// Steps grow outwards: small changes of order and large ones.
			d.shift = append(d.shift, int32(x*max(x, -x)*scheduleShift*float64(len(rank))))
		}
	}
	if d.Tasks.Has(plan.Fuse) {
		d.kind, d.kinds = fusionKinds(p.Graph, seconds, mostKinds)
	}
	return d
}

// On makes the units of p what is decided on; with oneFusion the fusion levels of
// the first unit hold for all.
func (d *Decoder) On(p *unit.Partition, oneFusion bool) { d.Units, d.oneFusion = p, oneFusion }

// Heads lists the tasks in the order in which a decision holds them.
func (d *Decoder) Heads() (all []Head) {
	for _, h := range []Head{{plan.Place, 1, d.devices}, {plan.Schedule, 1, scheduleLevels}, {plan.Fuse, d.kinds, fusionLevels}} {
		if d.Tasks.Has(h.Task) {
			all = append(all, h)
		}
	}
	return all
}

// Decode writes the plan of the decision action into to, which has room for what is
// decided and holds what is given.
func (d *Decoder) Decode(action []int32, to *Candidate) {
	n := d.Units.NumUnits()
	if d.Tasks.Has(plan.Place) {
		for i, u := range d.Units.Of {
			to.Device[i] = uint8(action[u])
		}
		action = action[n:]
	}
	if d.Tasks.Has(plan.Schedule) {
		d.schedule(action[:n], to)
		action = action[n:]
	}
	if d.Tasks.Has(plan.Fuse) {
		for i, u := range d.Units.Of {
			if d.oneFusion {
				u = 0
			}
			if k := d.kind[i]; k != noKind {
				to.Fusion[i] = uint8(action[int(u)*d.kinds+int(k)])
			}
		}
	}
}

// schedule moves each op down the order by the places that its unit's level says,
// or up, and writes the rank it comes to: ops of equal places keep their order.
func (d *Decoder) schedule(level []int32, to *Candidate) {
	low, high := slices.Min(d.shift), slices.Max(d.shift)
	size := len(d.order) + int(high-low) + 1
	to.count = slices.Grow(to.count[:0], size)[:size]
	count := to.count
	clear(count)
	for place, i := range d.order {
		count[int32(place)+d.shift[level[d.Units.Of[i]]]-low]++
	}
	at := int32(0)
	for k, c := range count {
		count[k], at = at, at+c
	}
	for place, i := range d.order {
		k := int32(place) + d.shift[level[d.Units.Of[i]]] - low
		to.Priority[i] = count[k]
		count[k]++
	}
}

// ClearIdle clears, in advantages of the choices of a decision, those of choices
// that decide nothing: the fusion of all units but the first where one holds for all.
func (d *Decoder) ClearIdle(perChoice []float32) {
	if d.oneFusion && d.kinds > 0 {
		clear(perChoice[len(perChoice)-(d.Units.NumUnits()-1)*d.kinds:])
	}
}

// fusionKinds deals the ops that may be fused with their readers out to at most
// most kinds: the op kinds that take most time, launches included, one each, and
// the others the last. An op kind is what decides how well an op fuses: what it
// costs to read and write again, and whether others can join it.
func fusionKinds(g *graph.Graph, seconds []float64, most int) (kind []uint8, kinds int) {
	fusible := fuse.NewRules(g).Fusible()
	mean := 0.0
	for _, i := range fusible {
		mean += seconds[i] / float64(len(fusible))
	}
	weight := map[graph.Kind]float64{}
	var names []graph.Kind
	for _, i := range slices.Sorted(slices.Values(fusible)) {
		k := g.Op(graph.OpID(i)).Kind
		if weight[k] == 0 {
			names = append(names, k)
		}
		weight[k] += seconds[i] + mean
	}
	slices.SortStableFunc(names, func(a, b graph.Kind) int { return cmp.Compare(weight[b], weight[a]) })
	kind = slices.Repeat([]uint8{noKind}, g.NumOps())
	for _, i := range fusible {
		kind[i] = uint8(min(slices.Index(names, g.Op(graph.OpID(i)).Kind), most-1))
	}
	return kind, max(1, min(len(names), most))
}
