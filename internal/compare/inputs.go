package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"placer/internal/fsx"
	"placer/internal/jsonx"
)

// InputsFile is the file of a comparison's folder that says what its cases stand for, a
// case a line. Folders that earlier versions made have none.
const InputsFile = "inputs.jsonl"

// Inputs are what a case stood for when its first trial began.
type Inputs struct {
	Case    string `json:"case"`
	Graph   string `json:"graph_hash"`
	Machine string `json:"machine_hash"`
	Times   string `json:"times_hash,omitempty"` // of op times that the graph's file brings
	// Predicted are seconds that tell one cost model from another. Versions before this key
	// wrote none.
	Predicted []float64 `json:"predicted_s,omitempty"`
}

// inputs are those of a comparison's cases so far. They serve any number of goroutines.
type inputs struct {
	mu    sync.Mutex
	path  string
	file  *fsx.Lines // nil before there is one
	known map[string]Inputs
}

// openInputs reads the file at path, if it is there.
func openInputs(path string) (*inputs, error) {
	x := &inputs{path: path, known: map[string]Inputs{}}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	return x, x.open()
}

func (x *inputs) open() (err error) {
	x.file, err = fsx.OpenLines(x.path, func(line []byte) error {
		var in Inputs
		if err := jsonx.Decode(line, &in); err != nil {
			return err
		}
		if _, ok := x.known[in.Case]; ok {
			return fmt.Errorf("%s a second time", in.Case)
		}
		x.known[in.Case] = in
		return nil
	})
	return err
}

// hold returns what the case of in has stood for so far; in, which is kept, where it is new.
func (x *inputs) hold(in Inputs) (was Inputs, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if was, ok := x.known[in.Case]; ok {
		return was, nil
	}
	if x.file == nil {
		if err := x.open(); err != nil {
			return in, err
		}
	}
	line, err := json.Marshal(in)
	if err != nil {
		return in, err
	}
	if err := x.file.Add(line); err != nil {
		return in, err
	}
	x.known[in.Case] = in
	return in, nil
}

// differs says what in has that was has not; empty where they are the same.
func (in Inputs) differs(was Inputs) string {
	var other []string
	for _, x := range []struct{ name, is, was string }{
		{"graph", in.Graph, was.Graph}, {"machine", in.Machine, was.Machine}, {"table of op times", in.Times, was.Times},
	} {
		if x.is != x.was {
			other = append(other, "another "+x.name)
		}
	}
	if len(other) == 0 && otherTimes(in.Predicted, was.Predicted) {
		other = append(other, "other predictions of the same steps, as by another version of placer,")
	}
	return strings.Join(other, " and ")
}

// sameTime is by how much a time may differ for another kind of processor, whose sums are rounded
// in other places.
const sameTime = 1e-6

// otherTimes reports whether a and b are times of other models; where one has none, nobody knows.
func otherTimes(a, b []float64) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	return !slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= sameTime*max(math.Abs(x), math.Abs(y)) })
}

func (x *inputs) close() error {
	if x.file == nil {
		return nil
	}
	return x.file.Close()
}
