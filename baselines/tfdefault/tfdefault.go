// Package tfdefault owns the placement that TensorFlow's placer makes when the
// program names no device.
//
// That placer gives each op, or each co-location group, the device of the
// highest priority for which all its kinds have a kernel: the first GPU before
// the first CPU. So every op with a GPU kernel lands on gpu:0, the other GPUs
// stay idle, and ops that exist on the host alone (input pipelines) go to the
// first CPU, if the machine has one; otherwise they stay with the rest.
package tfdefault

import (
	"context"

	"placer/baselines/judge"
	"placer/graph"
	"placer/hw"
	"placer/plan"
)

// Placer is TensorFlow's default.
type Placer struct{}

var _ plan.Placer = Placer{}

// Name returns "tf-default".
func (Placer) Name() string { return "tf-default" }

// Kind returns plan.Baseline.
func (Placer) Kind() plan.Kind { return plan.Baseline }

// Place evaluates its one placement.
func (Placer) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	j := judge.New(ctx, p, "tf-default")
	first := judge.Accelerators(p.Machine)[0]
	host := first
	for i := len(p.Machine.Devices) - 1; i >= 0; i-- {
		if p.Machine.Devices[i].Kind == hw.CPU {
			host = uint8(i)
		}
	}
	onHost := map[int32]bool{}
	for i := range p.Graph.NumOps() {
		if o := p.Graph.Op(graph.OpID(i)); o.Group > 0 && hostOnly(o.Kind) {
			onHost[o.Group] = true
		}
	}
	device := make([]uint8, p.Graph.NumOps())
	for i := range device {
		o := p.Graph.Op(graph.OpID(i))
		device[i] = first
		if hostOnly(o.Kind) || o.Group > 0 && onHost[o.Group] {
			device[i] = host
		}
	}
	j.Try(device)
	return j.Outcome()
}

// hostOnly reports whether TensorFlow has no GPU kernel for k. Of the kinds in
// our graphs those are the heads of input pipelines.
func hostOnly(k graph.Kind) bool {
	switch k {
	case "IteratorGetNext", "Iterator", "IteratorV2", "OneShotIterator", "MakeIterator", "ReaderRead":
		return true
	}
	return false
}
