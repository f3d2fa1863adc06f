package formats

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"placer/hw"
)

// llama.cpp counts the layers of the stack and the output as one more. The last -ngl of
// them are on GPUs; of those, layer i is on the first GPU k for which i is below the
// share of -ts up to k. The embedding's table is on the CPU always, where a lookup is
// (llama_model::load_tensors; tools/server/README.md).
//
// -ot PATTERN=BUFFER, an expression and the name of a backend's buffers, says where the
// tensors lie whose names it is found in; the first that is found counts. It moves weights,
// not the cache of keys and values. A product runs where its weights are, but with weights
// on the CPU and 32 tokens or more on the first GPU, to which the weights are sent
// (ggml_backend_sched_backend_id_from_cur, offload_op), unless --no-op-offload is given.

// opOffload is how many tokens a step has at least for which weights on the CPU are sent.
const opOffload = 32

// SendsWeights reports whether llama.cpp sends weights from the CPU in a step of so many tokens.
func SendsWeights(tokens int64) bool { return tokens >= opOffload }

// legalExperts reports why t cannot have the experts of s where they are.
func (t *Target) legalExperts(s *Split) error {
	host, apart := s.Machine.Host(), false
	for k, d := range s.Experts {
		if d == s.Device[k] {
			continue
		}
		if !t.Host || int(d) != host || !s.Parts.HasExperts(k) {
			return fmt.Errorf("the experts of %s are on %s", s.Parts.List[k].Path, s.Machine.Devices[d].Name)
		}
		apart = true
	}
	if apart && s.Sent {
		if n := s.Parts.Tokens(s.Graph); !SendsWeights(n) {
			return fmt.Errorf("%s sends weights from the CPU for %d tokens or more, the step has %d", t.Name, opOffload, n)
		}
	}
	return nil
}

func writeLlama(w io.Writer, s *Split) error {
	stage, err := s.stages(true)
	if err != nil {
		return err
	}
	order := s.Machine.Accelerators()
	if s.Machine.Devices[order[0]].Kind != hw.GPU || stage[len(stage)-1] < 0 {
		_, err = fmt.Fprintln(w, "llama-server -m MODEL.gguf -ngl 0")
		return err
	}
	shares := make([]int, len(order))
	shares[stage[len(stage)-1]]++ // the output counts as a layer, the last device's
	active := 1
	var apart []string
	for k, x := range s.Parts.List {
		if x.Layer >= 0 && stage[k] >= 0 {
			shares[stage[k]]++
			active++
		}
		if x.Layer >= 0 && s.Experts != nil && s.Experts[k] != s.Device[k] {
			apart = append(apart, strconv.Itoa(x.Layer))
		}
	}
	var experts string
	if len(apart) > 0 {
		experts = fmt.Sprintf(` -ot "blk\.(%s)\.ffn_(up|down|gate|gate_up)_exps\.=CPU"`, strings.Join(apart, "|"))
		if !s.Sent && SendsWeights(s.Parts.Tokens(s.Graph)) {
			experts += " --no-op-offload"
		}
	}
	_, err = fmt.Fprintf(w, "llama-server -m MODEL.gguf -ngl %d -sm layer -ts %s%s\n", active, join(shares, ","), experts)
	return err
}

var (
	llamaLayers = regexp.MustCompile(`(?:-ngl|--gpu-layers|--n-gpu-layers)[ =](\d+)`)
	llamaShares = regexp.MustCompile(`(?:-ts|--tensor-split)[ =]([\d.,/]+)`)
)

func isLlama(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("llama")) && llamaLayers.Match(data)
}

func readLlama(data []byte, s *Split) error {
	layers := s.Parts.Layers()
	if layers == 0 {
		return fmt.Errorf("the graph has no stack of blocks")
	}
	ngl, err := strconv.Atoi(string(llamaLayers.FindSubmatch(data)[1]))
	if err != nil {
		return err
	}
	active := min(ngl, layers+1)
	gpus, cpu := s.Machine.Accelerators(), s.Machine.Host()
	if s.Machine.Devices[gpus[0]].Kind != hw.GPU {
		gpus, cpu, active = nil, int(gpus[0]), 0
	}
	if cpu < 0 && active < layers {
		return fmt.Errorf("%d layers are on the CPU, which machine %s does not have", layers-active, s.Machine.Name)
	}
	share := make([]float64, len(gpus))
	if found := llamaShares.FindSubmatch(data); found != nil {
		if share, err = sharesIn(string(found[1]), s.Machine, len(gpus)); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(share, func(x float64) bool { return x > 0 }) {
		for i, d := range gpus { // the program's default, of GPUs that nothing else uses
			share[i] = float64(s.Machine.Devices[d].Memory)
		}
	}
	total := 0.0
	for _, x := range share {
		total += x
	}
	place := func(layer int) uint8 {
		start := layers + 1 - active
		if layer < start {
			return uint8(max(cpu, 0))
		}
		sum := 0.0
		for i, x := range share {
			if sum += x; float64(layer-start)/float64(active) < sum/total {
				return gpus[i]
			}
		}
		return gpus[len(gpus)-1]
	}
	s.Device = make([]uint8, len(s.Parts.List))
	for k, x := range s.Parts.List {
		switch {
		case x.Layer >= 0:
			s.Device[k] = place(x.Layer)
		case k < s.Parts.firstLayer():
			s.Device[k] = place(0)
		default:
			s.Device[k] = place(layers)
		}
	}
	return s.override(data, cpu, gpus)
}

// sharesIn reads the shares of so many GPUs; those that are not named have none.
func sharesIn(text string, m *hw.Machine, gpus int) ([]float64, error) {
	share := make([]float64, gpus)
	for i, part := range regexp.MustCompile(`[,/]`).Split(text, -1) {
		x, err := strconv.ParseFloat(part, 64)
		if err != nil || x < 0 || i >= gpus && x > 0 {
			return nil, fmt.Errorf("share %d of -ts is %q, machine %s has %d GPUs", i, part, m.Name, gpus)
		}
		if i < gpus {
			share[i] = x
		}
	}
	return share, nil
}
