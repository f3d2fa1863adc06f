package dispatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"

	"placer/plan"
	"placer/units"
)

// job is one placement to evaluate.
type job struct {
	ID      string `json:"id"`
	Run     string `json:"run"`
	Problem string `json:"problem"` // object with a problem
	// Priority is the object with the scheduler's ranks, of a job under those of its
	// problem; where it is empty the job has its own (Ranked), or is FIFO.
	Priority string `json:"priority,omitempty"`
	Ops      int    `json:"ops"`
	Fused    bool   `json:"fused,omitempty"`  // fusion priorities follow the devices
	Ranked   bool   `json:"ranked,omitempty"` // ranks follow these

	device []uint8 // [N]
	fusion []uint8 // [N] or nil
	ranks  []int32 // [N] or nil
	packed []byte  // all of them, compressed, of a job that was received
}

// encode appends the message of j to b: one line of JSON, then the compressed
// devices, fusion priorities and ranks.
func (j *job) encode(b []byte) ([]byte, error) {
	j.Ops, j.Fused, j.Ranked = len(j.device), j.fusion != nil, j.ranks != nil
	head, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	b = append(append(b, head...), '\n')
	raw := j.device
	if j.Fused || j.Ranked {
		raw = appendPlanes(slices.Concat(j.device, j.fusion), j.ranks)
	}
	return append(b, s2.Encode(nil, raw)...), nil
}

// rankBytes is the size of a rank.
const rankBytes = 4

// appendPlanes appends ranks, [N], to b: the low byte of each, then the next one of
// each, and so on. The high ones are few numbers, which compress.
func appendPlanes(b []byte, ranks []int32) []byte {
	n, at := len(ranks), len(b)
	b = append(b, make([]byte, rankBytes*n)...)
	for k := range rankBytes {
		plane := b[at+k*n:][:n]
		for i, r := range ranks {
			plane[i] = byte(uint32(r) >> (8 * k))
		}
	}
	return b
}

// fromPlanes returns the ranks, [N], that appendPlanes has written.
func fromPlanes(b []byte) []int32 {
	n := len(b) / rankBytes
	ranks := make([]int32, n)
	for k := range rankBytes {
		for i, x := range b[k*n:][:n] {
			ranks[i] |= int32(uint32(x) << (8 * k))
		}
	}
	return ranks
}

// decodeJob returns the job of a message with its decisions still packed.
func decodeJob(data []byte) (*job, error) {
	line := bytes.IndexByte(data, '\n')
	if line < 0 {
		return nil, errors.New("job: no head")
	}
	j := &job{}
	if err := json.Unmarshal(data[:line], j); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	if j.Ops < 1 {
		return nil, fmt.Errorf("job %s: %d ops", j.ID, j.Ops)
	}
	j.packed = data[line+1:]
	return j, nil
}

// unpack fills the decisions of j, which must be about n ops: what a message says of
// itself claims no memory.
func (j *job) unpack(n int) error {
	if j.Ops != n {
		return fmt.Errorf("placement of %d ops, the graph has %d", j.Ops, n)
	}
	want := n
	if j.Fused {
		want += n
	}
	if j.Ranked {
		want += rankBytes * n
	}
	if got, err := s2.DecodedLen(j.packed); err != nil || got != want {
		return fmt.Errorf("job %s: body does not hold the decisions of %d ops", j.ID, n)
	}
	raw, err := s2.Decode(nil, j.packed)
	if err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	j.device, raw = raw[:n], raw[n:]
	if j.Fused {
		j.fusion, raw = raw[:n], raw[n:]
	}
	if j.Ranked {
		j.ranks = fromPlanes(raw)
	}
	return nil
}

// result answers a job. Float64 survives JSON exactly.
type result struct {
	ID       string  `json:"id"`
	Worker   string  `json:"worker"`
	Seconds  float64 `json:"seconds"` // of the step
	Overflow int64   `json:"overflow"`
	Error    string  `json:"error,omitempty"` // why there is no score
}

func (r *result) score() plan.Score {
	return plan.Score{Value: r.Seconds, Overflow: units.Bytes(r.Overflow)}
}

// Problem is what a worker needs to evaluate placements.
type Problem struct {
	Kind           Kind
	Graph, Machine []byte // in their file forms
	// Priority is the ranks, [N], that most of the placements are judged under, nil for
	// none: they travel once, others with every placement. Workers' Problems have none.
	Priority []int32
	// Settings are what else the worker's evaluator depends on, in a form that both
	// sides know.
	Settings string
}

// problem names the objects of a Problem.
type problem struct {
	Kind     Kind   `json:"kind"`
	Graph    string `json:"graph"`
	Machine  string `json:"machine"`
	Settings string `json:"settings,omitempty"`
}

// beat is a worker's sign of life.
type beat struct {
	Worker string `json:"worker"`
	Kinds  []Kind `json:"kinds"`
	Slots  int    `json:"slots"`
	Done   int64  `json:"done"` // jobs since the worker began
	Leaves bool   `json:"leaves,omitempty"`
	// Doing are the jobs that the worker evaluates, by their ids.
	Doing []string `json:"doing,omitempty"`
	// Identity is what the worker's measurements depend on.
	Identity string `json:"identity,omitempty"`
}
