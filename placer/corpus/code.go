package corpus

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"placer/graph"
	"placer/placer/problem"
	"placer/plan"
)

// Parts of a stored decision beside its devices.
const (
	withFusion   = 1 << iota // fusion priorities differ from none
	withPriority             // priorities differ from the problem's
)

// encode returns d, a decision on p, compressed: a byte for the parts that follow, the
// device of each op, its fusion priority, and the priorities of the ops in the order of
// the problem's own, each as the difference from the one before. Neighbours differ little
// in all of them.
func encode(p *problem.Problem, d plan.Decision) ([]byte, error) {
	if slices.Equal(d.Priority, p.Priority) {
		d.Priority = nil
	}
	if !slices.ContainsFunc(d.Fusion, func(x uint8) bool { return x > 0 }) {
		d.Fusion = nil
	}
	parts := byte(0)
	if d.Fusion != nil {
		parts |= withFusion
	}
	if d.Priority != nil {
		parts |= withPriority
	}
	data := append([]byte{parts}, d.Device...)
	data = append(data, d.Fusion...)
	if d.Priority != nil {
		last := int32(0)
		for _, i := range inOrder(p.Priority, len(d.Device)) {
			data = binary.AppendVarint(data, int64(d.Priority[i]-last))
			last = d.Priority[i]
		}
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// inOrder returns the ops, [N], by their priorities; by number where there are none.
func inOrder(priority []int32, n int) []int32 {
	order := make([]int32, n)
	for i := range order {
		if priority == nil {
			order[i] = int32(i)
		} else {
			order[priority[i]] = int32(i)
		}
	}
	return order
}

// mostPerOp is the most that an op takes in a stored decision: a device, a fusion
// priority and a difference.
const mostPerOp = 1 + 1 + binary.MaxVarintLen32

// decode returns the decision on p that code holds.
func decode(p *problem.Problem, code []byte) (d plan.Decision, err error) {
	n := p.Graph.NumOps()
	most := 1 + mostPerOp*n
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(code)), int64(most)+1))
	if err != nil {
		return d, fmt.Errorf("plan: %w", err)
	}
	if len(data) > most || len(data) < 1+n {
		return d, fmt.Errorf("plan: %d bytes for %d ops", len(data), n)
	}
	parts, data := data[0], data[1:]
	if parts&^(withFusion|withPriority) != 0 {
		return d, fmt.Errorf("plan: unknown parts %#x", parts)
	}
	d.Device, data = data[:n:n], data[n:]
	if parts&withFusion != 0 {
		if len(data) < n {
			return d, errors.New("plan: ends within the fusion priorities")
		}
		d.Fusion, data = data[:n:n], data[n:]
	}
	if parts&withPriority != 0 {
		d.Priority = make([]int32, n)
		last := int64(0)
		for _, i := range inOrder(p.Priority, n) {
			x, size := binary.Varint(data)
			if last += x; size <= 0 || last < 0 || last >= int64(n) {
				return d, fmt.Errorf("plan: op %d (%s): no priority", i, p.Graph.Op(graph.OpID(i)).Name)
			}
			d.Priority[i], data = int32(last), data[size:]
		}
	}
	if len(data) > 0 {
		return d, fmt.Errorf("plan: %d bytes are left over", len(data))
	}
	check := plan.Plan{Decision: d}
	return d.Or(plan.Decision{Priority: p.Priority}), check.Check(p.Graph, p.Machine)
}
