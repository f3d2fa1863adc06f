package sequential

import (
	"math"

	"placer/graph"
)

// deviceFacts are what the features of a unit on a device are made of, beside the
// state of the rollout.
type deviceFacts struct {
	x *state
	u int32

	// Of the decision. The least of a figure is that over all devices.
	work        float64 // of the unit, in seconds, above 0
	mean        float64 // load of a device, in seconds
	decided     float64 // seconds of the transfers with units that are decided, or were before
	done        float64 // work that is decided, in seconds
	leastStart  float64
	leastReady  float64
	leastFree   float64
	leastLoad   float64
	counterpart int32 // device of the counterpart, or none
	prior       int32 // device that the heuristic prior chooses
	block       float64
	group       [numGroupings]int32
	last        [numGroupings]int32 // device of the group's last decided unit, or none

	// Of the device.
	d      int
	start  float64 // when the unit's first node could start
	ready  float64 // when that node's operands are there
	free   float64 // when the device is free
	load   float64 // work that the device has, with what it is expected to get
	apart  float64 // seconds of the transfers with other devices
	number float64 // how many devices were used before this one
}

// deviceFeatures are the features of a unit on a device, given what is decided, in the
// order in which policies read them. What is not a share or an indicator is over the
// unit's work (of unit) or over a device's mean load (of mean).
var deviceFeatures = []feature[deviceFacts]{
	{"start_of_unit", ofDevice, "how much later than elsewhere the unit could start", func(f *deviceFacts) float32 { return squash((f.start - f.leastStart) / f.work) }},
	{"start_of_mean", ofDevice, "the same", func(f *deviceFacts) float32 { return squash(8 * (f.start - f.leastStart) / f.mean) }},
	{"idle_of_unit", ofDevice, "how long the device would wait for the operands", func(f *deviceFacts) float32 { return squash((f.ready - f.free) / f.work) }},
	{"idle_of_mean", ofDevice, "the same", func(f *deviceFacts) float32 { return squash(8 * (f.ready - f.free) / f.mean) }},
	{"free_of_mean", ofDevice, "how much later than others the device is free", func(f *deviceFacts) float32 { return squash(8 * (f.free - f.leastFree) / f.mean) }},
	{"load_over_least", ofDevice, "how much more work than others the device has", func(f *deviceFacts) float32 { return squash(8 * (f.load - f.leastLoad) / f.mean) }},
	{"load", ofDevice, "work that the device has", func(f *deviceFacts) float32 { return squash(2 * f.load / f.mean) }},
	{"load_after", ofDevice, "by how much the unit would bring the device over the mean", func(f *deviceFacts) float32 {
		return squash(4 * (f.load + f.x.s.work[f.d][f.u] - f.mean) / f.mean)
	}},
	{"arrival_of_unit", ofDevice, "how much later than elsewhere the operands are there", func(f *deviceFacts) float32 { return squash((f.ready - f.leastReady) / f.work) }},
	{"arrival_of_mean", ofDevice, "the same", func(f *deviceFacts) float32 { return squash(8 * (f.ready - f.leastReady) / f.mean) }},
	{"transfer_of_unit", ofDevice, "transfers that the device would need", func(f *deviceFacts) float32 { return squash(f.apart / f.work) }},
	{"transfer_of_mean", ofDevice, "the same", func(f *deviceFacts) float32 { return squash(8 * f.apart / f.mean) }},
	{"saved_share", ofDevice, "share of the transfers that the device would save", func(f *deviceFacts) float32 {
		if f.decided == 0 {
			return 0
		}
		return float32(f.x.contact[f.d] / f.decided)
	}},
	{"counterpart", ofDevice, "whether the counterpart is here", func(f *deviceFacts) float32 { return f.is(f.counterpart) }},
	{"no_counterpart", ofDecision, "whether no counterpart is decided", func(f *deviceFacts) float32 { return indicator(f.counterpart == none) }},
	{"chain_last", ofDevice, "whether the last unit of the chain went here", func(f *deviceFacts) float32 { return f.is(f.last[byChain]) }},
	{"chain_share", ofDevice, "share of the chain's decided work that is here", func(f *deviceFacts) float32 { return f.shareOf(byChain) }},
	{"segment_last", ofDevice, "whether the last unit of the segment went here", func(f *deviceFacts) float32 { return f.is(f.last[bySegment]) }},
	{"segment_share", ofDevice, "share of the segment's decided work that is here", func(f *deviceFacts) float32 { return f.shareOf(bySegment) }},
	{"layer_last", ofDevice, "whether the last unit of the layer went here", func(f *deviceFacts) float32 { return f.is(f.last[byLayer]) }},
	{"layer_share", ofDevice, "share of the layer's decided work that is here", func(f *deviceFacts) float32 { return f.shareOf(byLayer) }},
	{"expert_last", ofDevice, "whether the last unit of the expert's part went here", func(f *deviceFacts) float32 { return f.is(f.last[byExpert]) }},
	{"expert_share", ofDevice, "share of the expert's part's decided work that is here", func(f *deviceFacts) float32 { return f.shareOf(byExpert) }},
	{"expert_new", ofDecision, "whether nothing of the expert's part is decided", func(f *deviceFacts) float32 { return indicator(f.last[byExpert] == none) }},
	{"block_last", ofDevice, "whether the last unit of the block went here", func(f *deviceFacts) float32 { return f.is(f.last[byBlock]) }},
	{"block_share", ofDevice, "share of the block's decided work that is here", func(f *deviceFacts) float32 { return f.shareOf(byBlock) }},
	{"block_new", ofDecision, "whether nothing of the block is decided", func(f *deviceFacts) float32 { return indicator(f.last[byBlock] == none) }},
	{"held", ofDevice, "share of the memory that is taken", func(f *deviceFacts) float32 { return float32(float64(f.x.held[f.d]) / float64(f.x.s.memory[f.d])) }},
	{"fits", ofDevice, "whether the unit fits", func(f *deviceFacts) float32 { return indicator(f.x.fits(f.u, f.d)) }},
	{"fresh", ofDevice, "whether the device is empty", func(f *deviceFacts) float32 { return indicator(f.x.number[f.d] == none) }},
	{"last", ofDevice, "whether the last decision was this device", func(f *deviceFacts) float32 { return f.is(f.x.last) }},
	{"pipeline", ofDevice, "how far the device's number is before the share of the work that is decided", func(f *deviceFacts) float32 {
		s := f.x.s
		return float32((f.number+0.5)/float64(s.d) - (f.done+s.own[f.u]/2)/s.total)
	}},
	{"in_block", ofDevice, "whether the device's number is that of the present block", func(f *deviceFacts) float32 { return indicator(f.number == f.block) }},
	{"earliest", ofDevice, "whether the unit could start here first", func(f *deviceFacts) float32 { return indicator(f.start <= f.leastStart) }},
	{"least_loaded", ofDevice, "whether the device has the least work", func(f *deviceFacts) float32 { return indicator(f.load <= f.leastLoad) }},
	{"used", ofDecision, "share of the devices that are not empty", func(f *deviceFacts) float32 { return float32(float64(f.x.used) / float64(f.x.s.d)) }},
	{"prior", ofDevice, "whether the heuristic prior chooses the device", func(f *deviceFacts) float32 { return f.is(f.prior) }},
	{"prior_gap_of_unit", ofDevice, "how much worse than its choice the prior finds the device", func(f *deviceFacts) float32 { return squash(f.priorGap() / f.work) }},
	{"prior_gap_of_mean", ofDevice, "the same", func(f *deviceFacts) float32 { return squash(8 * f.priorGap() / f.mean) }},
	{"by_list", ofDecision, "whether the prior is list scheduling", func(f *deviceFacts) float32 { return indicator(f.x.prior.rule == listRule) }},
	{"by_expert", ofDecision, "whether the prior is the expert's cut", func(f *deviceFacts) float32 { return indicator(f.x.prior.rule == expertRule) }},
	{"by_block", ofDecision, "whether the prior is the balanced cut", func(f *deviceFacts) float32 { return indicator(f.x.prior.rule == blockRule) }},
	{"load_weight", ofDecision, "the prior's", func(f *deviceFacts) float32 { return squash(f.x.prior.load) }},
	{"transfer_weight", ofDecision, "the prior's", func(f *deviceFacts) float32 { return squash(f.x.prior.transfers) }},
	{"colocate", ofDecision, "whether the prior keeps gradients at their forward part", func(f *deviceFacts) float32 { return indicator(f.x.prior.colocate) }},
	{"insertion", ofDecision, "whether the prior fills gaps", func(f *deviceFacts) float32 { return indicator(f.x.prior.insertion) }},
	{"learned_weight", ofDecision, "weight of what is learned beside the prior", func(f *deviceFacts) float32 { return f.x.prior.learned }},
	{"refining", ofDecision, "whether a placement is refined", func(f *deviceFacts) float32 { return indicator(f.x.refining) }},
	{"previous", ofDevice, "whether that placement has the unit here", func(f *deviceFacts) float32 {
		return indicator(f.x.refining && f.x.previous[f.u] == int32(f.d))
	}},
}

var numDeviceFeatures = len(deviceFeatures)

var deviceRows = rowsOf(deviceFeatures)

// Device features that scores depend on beside the network's layers.
var (
	priorFeature   = indexOf(deviceFeatures, "prior")
	learnedFeature = indexOf(deviceFeatures, "learned_weight")
)

// guides are the device features that rules of thumb say.
var guides = func() (at []int) {
	for _, name := range []string{
		"expert_last", "expert_share", "expert_new", "block_last", "block_share", "block_new", "in_block",
		"prior", "prior_gap_of_unit", "prior_gap_of_mean", "by_list", "by_expert", "by_block", "load_weight", "transfer_weight", "colocate", "insertion",
	} {
		at = append(at, indexOf(deviceFeatures, name))
	}
	return at
}()

// unguide clears the guides in rows of device features, [n*F].
func unguide(rows []float32) {
	for lo := 0; lo < len(rows); lo += numDeviceFeatures {
		for _, k := range guides {
			rows[lo+k] = 0
		}
	}
}

// is tells whether d is f's device.
func (f *deviceFacts) is(d int32) float32 { return indicator(d == int32(f.d)) }

// shareOf returns the share of the decided work of u's group of a kind that is on
// f's device; 0 where none is decided.
func (f *deviceFacts) shareOf(kind int) float32 {
	r, k := &f.x.decided[kind], f.group[kind]
	if r.sum[k] == 0 {
		return 0
	}
	return float32(r.on[int(k)*f.x.s.d+f.d] / r.sum[k])
}

// priorGap returns how much more f's device costs than the prior's choice.
func (f *deviceFacts) priorGap() float64 { return f.x.cost[f.d] - f.x.cost[f.prior] }

// survey finds the facts of a decision on unit u, whose node v is next; ok, [D], tells
// which devices are allowed.
func (x *state) survey(u int32, v graph.OpID, ok []bool) {
	s, inf := x.s, math.Inf(1)
	if s.unit[v] != u { // a variable, read by v: what is ready is the reader
		v = none
	}
	f := &x.facts
	*f = deviceFacts{x: x, u: u, work: s.own[u] + 1e-7, mean: s.mean, decided: x.contacts(u), counterpart: none, leastStart: inf, leastReady: inf, leastFree: inf, leastLoad: inf}
	for k := range s.groups {
		f.group[k] = s.groups[k].of[u]
		f.last[k] = x.decided[k].last[f.group[k]]
	}
	x.expectLoads(u)
	clear(x.ready)
	if v != none {
		x.arrivals(v)
	}
	for d := range s.d {
		length := 0.0
		if v != none {
			length = s.seconds[d][v]
		}
		x.start[d] = x.devices[d].Earliest(x.ready[d], length)
		f.leastStart, f.leastReady = min(f.leastStart, x.start[d]), min(f.leastReady, x.ready[d])
		f.leastFree, f.leastLoad = min(f.leastFree, x.devices[d].Free()), min(f.leastLoad, x.expected[d])
		f.done += x.load[d]
	}
	if c := s.counterpart[u]; c != none {
		f.counterpart = x.device[c]
	}
	f.prior = x.choose(u, v, f.decided, ok)
	f.block = min(float64(s.d-1), math.Floor((f.done+s.own[u]/2)/s.mean))
}

// write writes the features of the unit surveyed on every device, [D,numDeviceFeatures].
func (x *state) write(to []float32) {
	f := &x.facts
	for d := range x.s.d {
		f.d, f.start, f.ready, f.free, f.load = d, x.start[d], x.ready[d], x.devices[d].Free(), x.expected[d]
		f.apart, f.number = f.decided-x.contact[d], float64(x.number[d])
		if x.number[d] == none {
			f.number = float64(x.used)
		}
		row := to[d*numDeviceFeatures : (d+1)*numDeviceFeatures]
		if d == 0 {
			deviceRows.first(f, row)
		} else {
			deviceRows.next(f, to, row)
		}
	}
}

// contacts sums, for each device, the seconds of the transfers that u exchanges with
// the units there, and returns the sum of all. Where a placement is refined, units not
// decided yet count where it has them.
func (x *state) contacts(u int32) (decided float64) {
	clear(x.contact)
	neighbours, seconds := x.s.exchanges.Neighbours(u)
	for i, v := range neighbours {
		d := x.device[v]
		if d == none && x.refining {
			d = x.previous[v]
		}
		if d != none {
			x.contact[d] += seconds[i]
			decided += seconds[i]
		}
	}
	return decided
}

// expectLoads sums, for each device, the work of the units decided and of those that
// the placement being refined has there, without u's.
func (x *state) expectLoads(u int32) {
	for d := range x.expected {
		x.expected[d] = x.load[d] + x.pending[d]
	}
	if x.refining {
		d := x.previous[u]
		x.expected[d] -= x.s.work[d][u]
	}
}
