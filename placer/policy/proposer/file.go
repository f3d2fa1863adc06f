package proposer

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"placer/internal/jsonx"
	"placer/nn"
	"placer/nn/safetensors"
	"placer/plan"
)

// fileFormat is the value of "format" in the metadata of a file.
const fileFormat = "placer moves 1"

// Card says what a network has learned from.
type Card struct {
	Trained []string `json:"trained"`  // families
	HeldOut []string `json:"held_out"` // families that stayed out, with their kin
	Graphs  int      `json:"graphs"`
	Moves   int      `json:"moves"`
}

// header is the metadata of a file.
type header struct {
	Features []string `json:"features"` // their names: a file is of the columns that it was trained on
	Hidden   int      `json:"hidden"`
	Greed    float32  `json:"greed"`
	Card     Card     `json:"card"`
}

// Write writes n as a safetensors file.
func (n *Network) Write(w io.Writer) error {
	h, err := json.Marshal(header{featuresOf(n.tasks), n.hidden, n.Greed, n.Card})
	if err != nil {
		return fmt.Errorf("proposer: %w", err)
	}
	return safetensors.Write(w, nn.Checkpoint(n.params, nil, map[string]string{"format": fileFormat, "moves": string(h)}))
}

// Read reads what Write wrote; name is the file's name for errors.
func Read(data []byte, name string) (*Network, error) {
	f, err := safetensors.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if got := f.Metadata["format"]; got != fileFormat {
		return nil, fmt.Errorf("%s: format is %q, want %q", name, got, fileFormat)
	}
	var h header
	if err := jsonx.Decode([]byte(f.Metadata["moves"]), &h); err != nil {
		return nil, fmt.Errorf("%s: metadata: %w", name, err)
	}
	tasks := plan.Place
	if slices.Equal(h.Features, featuresOf(plan.AllTasks)) {
		tasks = plan.AllTasks
	} else if want := featuresOf(tasks); !slices.Equal(h.Features, want) {
		return nil, fmt.Errorf("%s: features of moves are %q, this program has %q, or %q of all tasks: train it anew", name, h.Features, want, featuresOf(plan.AllTasks))
	}
	if h.Hidden < 1 || h.Hidden > mostHidden {
		return nil, fmt.Errorf("%s: %d hidden, want 1 to %d", name, h.Hidden, mostHidden)
	}
	n := New(tasks, h.Hidden, rand.New(rand.NewPCG(0, 0)))
	if err := nn.Restore(f, n.params, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	n.Greed, n.Card = h.Greed, h.Card
	return n, nil
}
