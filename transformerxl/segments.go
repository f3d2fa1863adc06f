package transformerxl

import "fmt"

// Segment is a run of rows [Low,High) that attends to rows [Memory,High).
type Segment struct{ Memory, Low, High int32 }

// Segments cuts the rows between consecutive bounds, each a graph or a copy of
// one, into segments of length rows, whose memory is the memory rows before them
// in the same graph. memory must not exceed length: then each row is in the
// memory of one segment at most.
func Segments(bounds []int32, length, memory int) []Segment {
	if length < 1 || memory < 0 || memory > length {
		panic(fmt.Sprintf("transformerxl: segments of %d rows with memory of %d", length, memory))
	}
	var all []Segment
	for i := range len(bounds) - 1 {
		for lo := bounds[i]; lo < bounds[i+1]; lo += int32(length) {
			all = append(all, Segment{max(bounds[i], lo-int32(memory)), lo, min(lo+int32(length), bounds[i+1])})
		}
	}
	return all
}
