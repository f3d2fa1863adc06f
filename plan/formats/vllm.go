package formats

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"placer/internal/words"
)

// vLLM splits the layers of a model over pipeline stages by the numbers in
// VLLM_PP_LAYER_PARTITION, one a stage, whose sum is the number of layers
// (get_pp_indices in vllm/distributed/utils.py). A stage without layers, which would have the
// head alone, gets no further: the engine that reserves the cache of keys and values asserts
// that each stage has some (get_kv_cache_config_from_groups in vllm/v1/core/kv_cache_utils.py).

const vllmVariable = "VLLM_PP_LAYER_PARTITION"

// counts returns how many layers each stage has.
func (s *Split) counts() ([]int, error) {
	stage, err := s.stages(false)
	if err != nil {
		return nil, err
	}
	n := make([]int, stage[len(stage)-1]+1)
	for k, x := range s.Parts.List {
		if x.Layer >= 0 {
			n[stage[k]]++
		}
	}
	return n, nil
}

// fromCounts sets the devices from the layers of each stage: parts before the stack are
// on the first, parts behind it on the last, with layers or without.
func (s *Split) fromCounts(counts []int, order []uint8) error {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if layers := s.Parts.Layers(); sum != layers || layers == 0 {
		return fmt.Errorf("%s, the graph has %d", words.Count(sum, "layer", "layers"), layers)
	}
	if len(counts) > len(order) {
		return fmt.Errorf("%s, machine %s has %s", words.Count(len(counts), "stage", "stages"), s.Machine.Name, words.Count(len(order), "accelerator", "accelerators"))
	}
	of := make([]uint8, 0, sum)
	for i, n := range counts {
		for range n {
			of = append(of, order[i])
		}
	}
	s.Device = make([]uint8, len(s.Parts.List))
	for k, x := range s.Parts.List {
		switch {
		case x.Layer >= 0:
			s.Device[k] = of[x.Layer]
		case k < s.Parts.firstLayer():
			s.Device[k] = order[0]
		default:
			s.Device[k] = order[len(counts)-1]
		}
	}
	return nil
}

func join(numbers []int, by string) string {
	var text []string
	for _, n := range numbers {
		text = append(text, strconv.Itoa(n))
	}
	return strings.Join(text, by)
}

func writeVLLM(w io.Writer, s *Split) error {
	n, err := s.counts()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s=%s vllm serve MODEL --pipeline-parallel-size %d\n", vllmVariable, join(n, ","), len(n))
	return err
}

func isVLLM(data []byte) bool {
	return bytes.Contains(data[:min(len(data), 1<<12)], []byte(vllmVariable))
}

var vllmCounts = regexp.MustCompile(vllmVariable + `=["']?(\d+(?:,\d+)*)`)

func readVLLM(data []byte, s *Split) error {
	found := vllmCounts.FindSubmatch(data)
	if found == nil {
		return fmt.Errorf("%s has no numbers", vllmVariable)
	}
	n, err := numbersIn(string(found[1]), ",")
	if err != nil {
		return err
	}
	return s.fromCounts(n, s.Machine.Accelerators())
}

func numbersIn(text, by string) (list []int, err error) {
	for _, part := range strings.Split(text, by) {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 || n > 1<<20 {
			return nil, fmt.Errorf("%q is no number of layers", part)
		}
		list = append(list, n)
	}
	return list, nil
}
