package pipedream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"placer/internal/jsonx"
	"placer/internal/words"
)

// Conf is a configuration of PipeDream's runtime: which stage each module of a
// model is in, and which ranks (workers) run each stage. It says nothing of the
// layers in a module.
type Conf struct {
	Module []int   // stage of each module
	Ranks  [][]int // of each stage, [S]
}

// confFile is the form of the file.
type confFile struct {
	Module []int            `json:"module_to_stage_map"`
	Ranks  map[string][]int `json:"stage_to_rank_map"`
	// Depth is what a stage waits for before its first backward pass; derived, and
	// not in every file.
	Depth map[string]int `json:"stage_to_depth_map,omitempty"`
}

// ReadConf reads a configuration. name is the file's name, for errors.
func ReadConf(data []byte, name string) (*Conf, error) {
	var f confFile
	err := jsonx.Decode(data, &f)
	var c *Conf
	if err == nil {
		c, err = f.conf()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func (f *confFile) conf() (*Conf, error) {
	c := &Conf{Module: f.Module, Ranks: make([][]int, len(f.Ranks))}
	if len(f.Module) == 0 || len(f.Ranks) == 0 {
		return nil, fmt.Errorf("%s and %s", words.Count(len(f.Module), "module", "modules"), words.Count(len(f.Ranks), "stage", "stages"))
	}
	seen := map[int]bool{}
	for k := range c.Ranks {
		ranks, ok := f.Ranks[strconv.Itoa(k)]
		if !ok || len(ranks) == 0 {
			return nil, fmt.Errorf("stage_to_rank_map: stage %d of %d has no ranks", k, len(f.Ranks))
		}
		for _, r := range ranks {
			if r < 0 || seen[r] {
				return nil, fmt.Errorf("stage_to_rank_map: stage %d: rank %d is negative or taken", k, r)
			}
			seen[r] = true
		}
		c.Ranks[k] = ranks
	}
	stage := 0
	for m, k := range f.Module {
		if k < stage || k > stage+1 || m == 0 && k != 0 {
			return nil, fmt.Errorf("module_to_stage_map: module %d is in stage %d after stage %d", m, k, stage)
		}
		stage = k
	}
	if stage != len(c.Ranks)-1 {
		return nil, fmt.Errorf("module_to_stage_map ends with stage %d, stage_to_rank_map with %d", stage, len(c.Ranks)-1)
	}
	return c, nil
}

// Replicas returns the number of ranks of each stage, [S].
func (c *Conf) Replicas() []int {
	out := make([]int, len(c.Ranks))
	for k, r := range c.Ranks {
		out[k] = len(r)
	}
	return out
}

// NewConf returns the configuration of stages with these replicas: a module a
// stage and, as PipeDream's models have it, one more for the loss, in the last;
// ranks in order.
func NewConf(replicas []int) *Conf {
	c := &Conf{}
	rank := 0
	for k, m := range replicas {
		c.Module = append(c.Module, k)
		var ranks []int
		for range m {
			ranks = append(ranks, rank)
			rank++
		}
		c.Ranks = append(c.Ranks, ranks)
	}
	c.Module = append(c.Module, len(replicas)-1)
	return c
}

// Write writes the configuration as PipeDream's runtime reads it.
func (c *Conf) Write(w io.Writer) error {
	module, err := json.Marshal(c.Module)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n    \"module_to_stage_map\": %s,\n    \"stage_to_rank_map\": {", module)
	for k, r := range c.Ranks {
		ranks, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if k > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n        \"%d\": %s", k, ranks)
	}
	b.WriteString("\n    }\n}\n")
	_, err = w.Write(b.Bytes())
	return err
}
