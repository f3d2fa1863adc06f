package pipedream

import (
	"bufio"
	"fmt"
	"io"

	"placer/graph"
)

// Write writes the profile with the stage of every layer: the device of its
// forward op in device, [N].
func (x *Instance) Write(w io.Writer, device []uint8) error {
	if len(device) != x.Graph.NumOps() {
		panic(fmt.Sprintf("pipedream: %d devices for %d ops", len(device), x.Graph.NumOps()))
	}
	stage := make([]int, len(x.Layers))
	for i, l := range x.Layer {
		if !x.Backward[i] {
			stage[l] = int(device[graph.OpID(i)])
		}
	}
	b := bufio.NewWriter(w)
	for i := range x.Layers {
		l := &x.Layers[i]
		fmt.Fprintf(b, "%s -- %s -- forward_compute_time=%.3f, backward_compute_time=%.3f, activation_size=%s, parameter_size=%.3f -- stage_id=%d\n",
			l.ID, l.Description, 1e3*l.Forward, 1e3*l.Backward, l.sizes, l.Parameters, stage[i])
	}
	for i := range x.Layers {
		for _, u := range x.Layers[i].Inputs {
			fmt.Fprintf(b, "\t%s -- %s\n", x.Layers[u].ID, x.Layers[i].ID)
		}
	}
	return b.Flush()
}

// Stages returns the stage of each op, [N], that the profile names, and how many
// there are; 0 where it names none.
func (x *Instance) Stages() (stage []uint8, count int) {
	stage = make([]uint8, len(x.Layer))
	for i, l := range x.Layer {
		s := x.Layers[l].Stage
		if s < 0 || s > 255 {
			return nil, 0
		}
		stage[i] = uint8(s)
		count = max(count, s+1)
	}
	return stage, count
}
