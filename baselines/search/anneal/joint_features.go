package anneal

import (
	"fmt"
	"math"
)

// jointFeature is a figure of a move of all tasks that a guide reads, as moveFeature is of
// a placement alone.
type jointFeature struct {
	name, doc string
	of        func(*jointFacts) float64
}

// jointFeatures are the features of a joint move beside its kind, in the order in which
// guides read them. Times are over the length of the step where nothing else is said.
var jointFeatures = [...]jointFeature{
	{"temperature", "of the annealing, its logarithm", func(f *jointFacts) float64 { return math.Log(f.temperature) / 4 }},
	{"devices", "of the machine, their logarithm", func(f *jointFacts) float64 { return math.Log2(f.devices) }},
	{"ops", "of the problem, their logarithm", func(f *jointFacts) float64 { return math.Log(f.ops) / 4 }},
	{"used", "mean work of a device", func(f *jointFacts) float64 { return f.mean / f.step }},
	{"most", "work of the busiest device", func(f *jointFacts) float64 { return f.most / f.step }},
	{"success", "of this kind of move of late", func(f *jointFacts) float64 { return math.Log(f.success) / 2 }},

	{"placed", "ops that move, their logarithm", func(f *jointFacts) float64 { return math.Log2(1+f.placed) / 4 }},
	{"place_work", "of what moves", func(f *jointFacts) float64 { return squash(8 * f.place.work / f.step) }},
	{"place_work_small", "the same, for small ones", func(f *jointFacts) float64 { return squash(100 * f.place.work / f.step) }},
	{"place_critical", "of that on the critical path", func(f *jointFacts) float64 { return squash(50 * f.place.critical / f.step) }},
	{"place_slack", "least slack of what moves", func(f *jointFacts) float64 { return squash(16 * f.place.slack) }},
	{"place_wait", "between the inputs of what moves and its start", func(f *jointFacts) float64 { return squash(16 * f.place.wait) }},
	{"place_from", "work of the devices that are left, over the mean", func(f *jointFacts) float64 { return squash(2 * f.place.from / (f.mean + 1e-15)) }},
	{"place_to", "work of the devices gone to, over the mean", func(f *jointFacts) float64 { return squash(2 * f.place.to / (f.mean + 1e-15)) }},
	{"place_even", "how much more that is", func(f *jointFacts) float64 { return squash(8 * (f.place.to + f.place.work - f.place.from) / f.step) }},
	{"place_path_from", "of the critical path on the devices that are left", func(f *jointFacts) float64 { return f.place.pathFrom }},
	{"place_path_to", "of the critical path on the devices gone to", func(f *jointFacts) float64 { return f.place.pathTo }},
	{"place_saved", "transfers that are no more", func(f *jointFacts) float64 { return squash(16 * f.place.saved / f.step) }},
	{"place_added", "transfers that are new", func(f *jointFacts) float64 { return squash(16 * f.place.added / f.step) }},
	{"place_net", "transfers saved", func(f *jointFacts) float64 { return squash(16 * (f.place.saved - f.place.added) / f.step) }},
	{"place_net_small", "the same, for small ones", func(f *jointFacts) float64 { return squash(200 * (f.place.saved - f.place.added) / f.step) }},
	{"place_saved_critical", "transfers that are no more, between ops on the critical path", func(f *jointFacts) float64 { return squash(100 * f.place.savedCritical / f.step) }},
	{"place_added_critical", "transfers that are new, between ops on the critical path", func(f *jointFacts) float64 { return squash(100 * f.place.addedCrit / f.step) }},
	{"place_torn", "what the fusion of kernels saved that are torn", func(f *jointFacts) float64 { return squash(100 * f.place.torn / f.step) }},
	{"place_joined", "work that can be fused with what is there", func(f *jointFacts) float64 { return squash(100 * f.place.joined / f.step) }},
	{"place_busy_from", "share of the time in which the device that is left is busy while the op runs", func(f *jointFacts) float64 { return f.place.busyFrom }},
	{"place_busy_to", "the same of the device gone to, when the inputs would be there", func(f *jointFacts) float64 { return f.place.busyTo }},
	{"place_later", "how much later ops would have their inputs", func(f *jointFacts) float64 { return squash(50 * f.place.later) }},
	{"place_later_critical", "the same of those on the critical path", func(f *jointFacts) float64 { return squash(50 * f.place.laterCritical) }},
	{"place_delayed", "how much later readers would have theirs", func(f *jointFacts) float64 { return squash(50 * f.place.delayed) }},
	{"place_delayed_critical", "the same of readers of ops on the critical path", func(f *jointFacts) float64 { return squash(50 * f.place.delayedCritical) }},
	{"place_begin", "when the first of what moves begins", func(f *jointFacts) float64 { return f.place.begin }},
	{"place_span", "from there to the end of the last", func(f *jointFacts) float64 { return f.place.end - f.place.begin }},
	{"place_one", "whether all go to one device", func(f *jointFacts) float64 { return f.place.uniform }},

	{"urged", "ops whose priority changes, their logarithm", func(f *jointFacts) float64 { return math.Log2(1+f.urged) / 4 }},
	{"urge_by", "places, their logarithm", func(f *jointFacts) float64 { return f.shift.delta / 4 }},
	{"urge_less", "whether they become less urgent", func(f *jointFacts) float64 { return f.shift.sign }},
	{"urge_work", "of these ops", func(f *jointFacts) float64 { return squash(100 * f.shift.work / f.step) }},
	{"urge_critical", "of that on the critical path", func(f *jointFacts) float64 { return squash(100 * f.shift.critical / f.step) }},
	{"urge_slack", "of these ops", func(f *jointFacts) float64 { return squash(50 * f.shift.slack) }},
	{"urge_wait", "between their inputs and their start", func(f *jointFacts) float64 { return squash(50 * f.shift.wait) }},
	{"urge_leading", "share of them whose kernel has another priority then", func(f *jointFacts) float64 { return f.shift.leading }},
	{"urge_none", "whether nothing is passed", func(f *jointFacts) float64 { return f.shift.none }},
	{"urge_passes", "kernels passed, their logarithm", func(f *jointFacts) float64 { return math.Log2(1+f.shift.passes) / 2 }},
	{"urge_passed", "their time", func(f *jointFacts) float64 { return squash(100 * f.shift.passed / f.step) }},
	{"urge_passed_critical", "of that on the critical path", func(f *jointFacts) float64 { return squash(100 * f.shift.passedCrit / f.step) }},
	{"urge_passed_slack", "least slack of what is passed", func(f *jointFacts) float64 { return squash(50 * f.shift.passedSlack) }},
	{"urge_earlier", "by how much these ops could start earlier, or would be late", func(f *jointFacts) float64 { return squash(100 * f.shift.earliest) }},
	{"urge_helped", "the same of ops on the critical path that would be earlier", func(f *jointFacts) float64 { return squash(100 * f.shift.helped / f.step) }},
	{"urge_hurt", "by how much others would be late beyond their slack", func(f *jointFacts) float64 { return squash(100 * f.shift.hurt / f.step) }},

	{"fused", "ops whose fusion changes, their logarithm", func(f *jointFacts) float64 { return math.Log2(1+f.fused) / 4 }},
	{"fuse_work", "of these ops", func(f *jointFacts) float64 { return squash(50 * f.fuse.work / f.step) }},
	{"fuse_critical", "of that on the critical path", func(f *jointFacts) float64 { return squash(50 * f.fuse.critical / f.step) }},
	{"fuse_slack", "least slack of these kernels", func(f *jointFacts) float64 { return squash(50 * f.fuse.slack) }},
	{"fuse_level", "by how much their fusion priority grows", func(f *jointFacts) float64 { return f.fuse.level / 4 }},
	{"fuse_never", "share that is not fused with readers any more", func(f *jointFacts) float64 { return f.fuse.never }},
	{"fuse_joins", "fused intermediates that are new, their logarithm", func(f *jointFacts) float64 { return math.Log2(1+f.fuse.joins) / 2 }},
	{"fuse_breaks", "those that are no more", func(f *jointFacts) float64 { return math.Log2(1+f.fuse.breaks) / 2 }},
	{"fuse_illegal", "those that the rules forbid", func(f *jointFacts) float64 { return math.Log2(1+f.fuse.illegal) / 2 }},
	{"fuse_reordered", "those that depend on others", func(f *jointFacts) float64 { return math.Log2(1+f.fuse.reordered) / 2 }},
	{"fuse_kept", "those that stay", func(f *jointFacts) float64 { return math.Log2(1+f.fuse.kept) / 2 }},
	{"fuse_launches", "launches saved", func(f *jointFacts) float64 { return squash(100 * f.fuse.launches / f.step) }},
	{"fuse_launches_critical", "the same on the critical path", func(f *jointFacts) float64 { return squash(100 * f.fuse.launchesCritical / f.step) }},
	{"fuse_traffic", "memory traffic saved", func(f *jointFacts) float64 { return squash(100 * f.fuse.traffic / f.step) }},
	{"fuse_traffic_critical", "the same on the critical path", func(f *jointFacts) float64 { return squash(100 * f.fuse.trafficCritical / f.step) }},
	{"fuse_gap", "between the kernels that become one", func(f *jointFacts) float64 { return squash(50 * f.fuse.gap) }},
	{"fuse_size", "of what they become, over the most that is allowed", func(f *jointFacts) float64 { return f.fuse.size }},
	{"fuse_anchors", "share that holds a matrix product or a convolution", func(f *jointFacts) float64 { return f.fuse.anchors }},
	{"fuse_late", "by how much the first of them would be late beyond its slack", func(f *jointFacts) float64 { return squash(100 * f.fuse.late) }},
	{"fuse_late_critical", "the same on the critical path", func(f *jointFacts) float64 { return squash(100 * f.fuse.lateCritical) }},
}

// NumJointFeatures is the number of features of a joint move: those of the table, and one
// for each kind, which is 1 for its own.
const NumJointFeatures = len(jointFeatures) + jointKinds

// JointFeatureNames returns the names of the features, [NumJointFeatures].
func JointFeatureNames() []string {
	names := make([]string, 0, NumJointFeatures)
	for _, f := range jointFeatures {
		names = append(names, f.name)
	}
	for k := range jointKinds {
		names = append(names, fmt.Sprintf("kind_%d", k))
	}
	return names
}
