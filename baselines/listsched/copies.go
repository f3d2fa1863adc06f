package listsched

import (
	"placer/graph"
	"placer/schedule"
	"placer/units"
)

// Where copies occupy the sender (docs/adr/0027-copies-that-occupy-the-sender.md)
// one copy serves all readers, directly behind the op that makes the tensor, and the
// first op of a device that reads it takes its receipt longer. In a schedule that is
// made op by op, later ops may have taken the time behind the op already, and are not
// moved: the tensor arrives as if they waited, and the first gap behind the op is
// taken in their place, so that the sender has as much to do. An op that would end
// before its senders are done with their copies counts as ending then.

// sendingCopies are the copies made so far.
type sendingCopies struct {
	end []float64 // [T] of the tensor's copy; 0: none
	had []bool    // [T*D] an op of the device has read it
}

// copied returns when the copy of tensor t, of b bytes, made by q, for device v ends.
func (s *gapFilling) copied(t graph.TensorID, q graph.OpID, v int, b units.Bytes) float64 {
	if end := s.copies.end[t]; end > 0 {
		return end
	}
	return s.finish[q] + float64(s.p.Machine.TransferSeconds(s.device[q], v, b))
}

// copyOut has q's device make the copy of tensor t for device v, if it has not.
func (s *gapFilling) copyOut(t graph.TensorID, q graph.OpID, v int, b units.Bytes) {
	if s.copies.end[t] > 0 {
		return
	}
	end := s.copied(t, q, v, b)
	length := end - s.finish[q]
	s.devices[s.device[q]].Take(s.copySlot(q, length), length)
	s.copies.end[t] = end
}

// copySlot returns from when on q's device has time for a copy of that length.
func (s *gapFilling) copySlot(q graph.OpID, length float64) float64 {
	return s.devices[s.device[q]].Earliest(s.finish[q], length)
}

// sent returns when q's device is done with the copy of tensor t for device v.
func (s *gapFilling) sent(t graph.TensorID, q graph.OpID, v int, b units.Bytes) float64 {
	if s.copies == nil || s.copies.end[t] > 0 {
		return 0
	}
	length := s.copied(t, q, v, b) - s.finish[q]
	return s.copySlot(q, length) + length
}

// receipts returns how much longer op i takes on v by what it is the first there to
// read.
func (s *gapFilling) receipts(i graph.OpID, v int) (sum float64) {
	if s.copies == nil {
		return 0
	}
	for k, t := range s.g.Inputs(i) {
		x := s.g.Tensor(t)
		w := s.device[x.Producer]
		if w == none || w == v || s.copies.had[int(t)*s.d+v] || repeated(s.g.Inputs(i), k) {
			continue
		}
		sum += schedule.Receipt(s.p.Machine, w, v, x.Bytes)
	}
	return sum
}

// received notes that v has what i reads.
func (s *gapFilling) received(i graph.OpID, v int) {
	if s.copies == nil {
		return
	}
	for _, t := range s.g.Inputs(i) {
		s.copies.had[int(t)*s.d+v] = true
	}
}

// repeated reports whether the k-th tensor stands before k too.
func repeated(in []graph.TensorID, k int) bool {
	for _, t := range in[:k] {
		if t == in[k] {
			return true
		}
	}
	return false
}
