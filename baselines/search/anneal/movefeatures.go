package anneal

import (
	"fmt"
	"math"
)

// moveFeature is a figure of a move that a guide reads. Features name no kind of op and
// carry no unit of measure, so they hold for graphs of any family and size.
type moveFeature struct {
	name, doc string
	of        func(*moveFacts) float64
}

// moveFeatures are the features of a move beside its kind, in the order in which guides
// read them. Times are over the length of the step where nothing else is said.
var moveFeatures = [...]moveFeature{
	{"temperature", "of the annealing, its logarithm", func(f *moveFacts) float64 { return math.Log(f.temperature) / 4 }},
	{"devices", "of the machine, their logarithm", func(f *moveFacts) float64 { return math.Log2(f.devices) }},
	{"decisions", "of the problem, their logarithm", func(f *moveFacts) float64 { return math.Log(f.decisions) / 4 }},
	{"run", "most decisions of a group that move at once, their logarithm", func(f *moveFacts) float64 { return math.Log2(min(f.run, 256)) / 4 }},
	{"tools", "success of this kind of move of late, over the mean of all", func(f *moveFacts) float64 { return squash(f.tools) }},
	{"changed", "decisions that move, their logarithm", func(f *moveFacts) float64 { return math.Log2(f.changed) / 4 }},
	{"work", "of the decisions that move", func(f *moveFacts) float64 { return squash(8 * f.work / f.step) }},
	{"work_small", "the same, for small ones", func(f *moveFacts) float64 { return squash(100 * f.work / f.step) }},
	{"work_of_mean", "the same over the mean work of a device", func(f *moveFacts) float64 { return squash(4 * f.work / f.mean) }},
	{"weightless", "share of the decisions that take no time", func(f *moveFacts) float64 { return f.weightless }},
	{"used", "mean work of a device", func(f *moveFacts) float64 { return f.mean / f.step }},
	{"most", "work of the busiest device", func(f *moveFacts) float64 { return f.most / f.step }},
	{"most_change", "by how much that grows", func(f *moveFacts) float64 { return squash(16 * (f.mostAfter - f.most) / f.step) }},
	{"from", "work of the devices that are left, over the mean", func(f *moveFacts) float64 { return squash(2 * f.from / f.mean) }},
	{"to", "work of the devices gone to, over the mean", func(f *moveFacts) float64 { return squash(2 * f.to / f.mean) }},
	{"after", "work of the devices gone to, after the move", func(f *moveFacts) float64 { return f.after / f.step }},
	{"even", "how much more that is than the devices that are left had", func(f *moveFacts) float64 { return squash(8 * (f.after - f.from) / f.step) }},
	{"saved", "transfers that are no more", func(f *moveFacts) float64 { return squash(16 * f.saved / f.step) }},
	{"added", "transfers that are new", func(f *moveFacts) float64 { return squash(16 * f.added / f.step) }},
	{"net", "transfers saved", func(f *moveFacts) float64 { return squash(16 * (f.saved - f.added) / f.step) }},
	{"net_small", "the same, for small ones", func(f *moveFacts) float64 { return squash(200 * (f.saved - f.added) / f.step) }},
	{"net_of_work", "the same over the work that moves", func(f *moveFacts) float64 { return squash((f.saved - f.added) / (f.work + 1e-9)) }},
	{"saved_critical", "transfers that are no more, between decisions on the critical path", func(f *moveFacts) float64 { return squash(100 * f.savedCritical / f.step) }},
	{"added_critical", "transfers that are new, between decisions on the critical path", func(f *moveFacts) float64 { return squash(100 * f.addedCritical / f.step) }},
	{"critical", "work on the critical path that moves", func(f *moveFacts) float64 { return squash(50 * f.critical / f.step) }},
	{"critical_share", "the same over the work that moves", func(f *moveFacts) float64 { return f.critical / (f.work + 1e-15) }},
	{"wait", "between the inputs of what moves and its start", func(f *moveFacts) float64 { return squash(16 * f.wait) }},
	{"wait_of_work", "the same over the work of a decision", func(f *moveFacts) float64 { return squash(f.wait * f.step / (f.work/f.changed + 1e-9)) }},
	{"busy_from", "share of the time in which the device that is left is busy while the decision runs", func(f *moveFacts) float64 { return f.busyFrom }},
	{"busy_to", "the same of the device gone to", func(f *moveFacts) float64 { return f.busyTo }},
	{"path_from", "of the critical path on the devices that are left", func(f *moveFacts) float64 { return f.pathFrom }},
	{"path_to", "of the critical path on the devices gone to", func(f *moveFacts) float64 { return f.pathTo }},
	{"begin", "when the first of what moves begins", func(f *moveFacts) float64 { return f.begin }},
	{"span", "from there to the end of the last", func(f *moveFacts) float64 { return f.end - f.begin }},
	{"later", "how much later decisions would have their inputs", func(f *moveFacts) float64 { return squash(50 * f.later) }},
	{"delayed", "how much later readers would have theirs", func(f *moveFacts) float64 { return squash(50 * f.delayed) }},
	{"later_critical", "how much later decisions on the critical path would have their inputs", func(f *moveFacts) float64 { return squash(50 * f.laterCritical) }},
	{"delayed_critical", "how much later readers of those would have theirs", func(f *moveFacts) float64 { return squash(50 * f.delayedCritical) }},
	{"busy_then", "share of the time in which the device gone to is busy when the inputs would be there", func(f *moveFacts) float64 { return f.busyThen }},
	{"one", "whether all go to one device", func(f *moveFacts) float64 {
		if f.one {
			return 1
		}
		return 0
	}},
}

// NumMoveFeatures is the number F of features of a move: those of the table, and one for
// each kind of moves that guides choose, which is 1 for its own.
const NumMoveFeatures = len(moveFeatures) + moveRecreate

// MoveFeatureNames returns the names of the features, [F].
func MoveFeatureNames() []string {
	names := make([]string, 0, NumMoveFeatures)
	for _, f := range moveFeatures {
		names = append(names, f.name)
	}
	for k := range moveRecreate {
		names = append(names, fmt.Sprintf("kind_%d", k))
	}
	return names
}

// squash keeps the order of x and its scale near 0, and grows like a root, up to 5.
func squash(x float64) float64 {
	return math.Copysign(min(math.Sqrt(1+2*math.Abs(x))-1, 5), x)
}
