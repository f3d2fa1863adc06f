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
	"placer/internal/words"
)

// llama.cpp counts the layers of the stack and the output as one more. The last -ngl of
// them are on GPUs; of those, layer i is on the first GPU k for which i is below the
// share of -ts up to k (llama_model::load_tensors; tools/server/README.md).
//
// The embedding's table it keeps on the CPU, whatever -ngl says, and looks tokens up there.
// Here what is before the stack is with the first layer: weights have no copies here, and the
// output of a model with tied weights, for which llama.cpp loads the table a second time,
// would receive it from the CPU in each step. So the first GPU is counted the table too much,
// and a step lacks the copy of its tokens' embeddings from the CPU.
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
	llamaProgram = regexp.MustCompile(`(?:^|[\s/\\])llama[\w.-]*\s`)
	llamaLayers  = regexp.MustCompile(`\s(?:-ngl|--gpu-layers|--n-gpu-layers)[ =](\S+)`)
	llamaShares  = regexp.MustCompile(`\s(?:-ts|--tensor-split)[ =]([\d.,/]+)`)
	// llamaOther finds options under which GPUs have no layers as they are here.
	llamaOther = regexp.MustCompile(`\s((?:-sm|--split-mode)[ =](?:none|row|tensor)|(?:-dev|--device)[ =]\S+)`)
)

// isLlama reports whether data is a command line of one of llama.cpp's programs: JSON is none.
func isLlama(data []byte) bool {
	head := bytes.TrimSpace(data[:min(len(data), 1<<12)])
	return !bytes.HasPrefix(head, []byte("{")) && llamaProgram.Match(head) && llamaLayers.Match(head)
}

// activeLayers reads -ngl: how many of the layers and the output are on GPUs.
func activeLayers(text string, layers int) (int, error) {
	if text == "all" {
		return layers + 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("-ngl %s: want a number of layers, or all", strconv.Quote(text))
	}
	return min(n, layers+1), nil
}

func readLlama(data []byte, s *Split) error {
	layers := s.Parts.Layers()
	if layers == 0 {
		return fmt.Errorf("the graph has no stack of blocks")
	}
	active, err := activeLayers(string(llamaLayers.FindSubmatch(data)[1]), layers)
	if err != nil {
		return err
	}
	if found := llamaOther.FindSubmatch(data); found != nil {
		return fmt.Errorf("%q is not read: want layers split over the GPUs in their order", found[1])
	}
	gpus, cpu := s.Machine.Accelerators(), s.Machine.Host()
	if s.Machine.Devices[gpus[0]].Kind != hw.GPU {
		gpus, cpu, active = nil, int(gpus[0]), 0
	}
	if cpu < 0 && active < layers {
		return fmt.Errorf("%s on the CPU, which machine %s does not have", words.Count(layers-active, "layer is", "layers are"), s.Machine.Name)
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
			return nil, fmt.Errorf("share %d of -ts is %q, machine %s has %s", i, part, m.Name, words.Count(gpus, "GPU", "GPUs"))
		}
		if i < gpus {
			share[i] = x
		}
	}
	return share, nil
}
