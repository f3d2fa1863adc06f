package formats

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// override is one of llama.cpp's overrides: where tensors lie whose name matches.
type override struct {
	matches func(tensor string) bool
	buffer  string
}

var (
	shellWord    = regexp.MustCompile(`(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'])+`)
	shellQuoted  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|\\.`)
	shellEscaped = regexp.MustCompile("\\\\([\\\\\"$`])")
	bufferNumber = regexp.MustCompile(`^(?:CUDA|ROCm|Vulkan|SYCL)(\d+)$`)
	// expertTensors finds the names of experts (LLM_FFN_EXPS_REGEX in common/common.h).
	expertTensors = regexp.MustCompile(`blk\.(\d+)\.ffn_(up|down|gate|gate_up)_(ch|)exps`)
)

// shellWords returns the words of a command line, without their quotes.
func shellWords(line string) (words []string) {
	for _, word := range shellWord.FindAllString(line, -1) {
		words = append(words, shellQuoted.ReplaceAllStringFunc(word, func(q string) string {
			switch q[0] {
			case '\'':
				return q[1 : len(q)-1]
			case '"':
				return shellEscaped.ReplaceAllString(q[1:len(q)-1], "$1")
			}
			return q[1:]
		}))
	}
	return words
}

// overrides reads the options that say where tensors lie, in their order.
func overrides(words []string) (list []override, err error) {
	for i, word := range words {
		flag, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			value = words[i+1]
		}
		switch flag {
		case "-cmoe", "--cpu-moe":
			list = append(list, override{expertTensors.MatchString, "CPU"})
		case "-ncmoe", "--n-cpu-moe":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("%s %q: want a number of layers", flag, value)
			}
			list = append(list, override{func(tensor string) bool {
				found := expertTensors.FindStringSubmatch(tensor)
				if found == nil {
					return false
				}
				l, err := strconv.Atoi(found[1])
				return err == nil && l < n
			}, "CPU"})
		case "-ot", "--override-tensor":
			for _, part := range strings.Split(value, ",") {
				pattern, buffer, ok := strings.Cut(part, "=")
				if !ok {
					return nil, fmt.Errorf("-ot: %q is not PATTERN=BUFFER", part)
				}
				re, err := regexp.Compile(pattern)
				if err != nil {
					return nil, fmt.Errorf("-ot: the expression %q is not read", pattern)
				}
				list = append(list, override{re.MatchString, buffer})
			}
		}
	}
	return list, nil
}

// override moves the experts that data's options move, once s.Device is known. Of the tensors
// of a layer the experts alone can be elsewhere, all of them together.
func (s *Split) override(data []byte, cpu int, gpus []uint8) error {
	words := shellWords(string(data))
	list, err := overrides(words)
	if err != nil || len(list) == 0 {
		return err
	}
	device := make([]uint8, len(list)) // of each override
	for i, o := range list {
		number := bufferNumber.FindStringSubmatch(o.buffer)
		switch {
		case o.buffer == "CPU" && cpu >= 0:
			device[i] = uint8(cpu)
		case number != nil:
			n, err := strconv.Atoi(number[1])
			if err != nil || n >= len(gpus) {
				return fmt.Errorf("-ot: machine %s has no %s", s.Machine.Name, o.buffer)
			}
			device[i] = gpus[n]
		default:
			return fmt.Errorf("-ot: buffer %q is none of machine %s: want CPU or CUDA0 and so on", o.buffer, s.Machine.Name)
		}
	}
	on := func(tensor string, otherwise uint8) uint8 {
		for i, o := range list {
			if o.matches(tensor) {
				return device[i]
			}
		}
		return otherwise
	}
	experts := slices.Clone(s.Device)
	for k, x := range s.Parts.List {
		if x.Layer < 0 {
			continue
		}
		at, has := s.Device[k], s.Parts.HasExperts(k)
		rest := []string{"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"}
		if has {
			rest = append(rest[:6], "ffn_gate_inp")
		}
		for _, tensor := range rest {
			if name := fmt.Sprintf("blk.%d.%s.weight", x.Layer, tensor); on(name, at) != at {
				return fmt.Errorf("-ot moves %s, of a layer's tensors only the experts are read apart", name)
			}
		}
		if !has {
			continue
		}
		for i, tensor := range []string{"gate", "up", "down"} {
			name := fmt.Sprintf("blk.%d.ffn_%s_exps.weight", x.Layer, tensor)
			d := on(name, at)
			if i > 0 && d != experts[k] {
				return fmt.Errorf("-ot has %s apart from the layer's other experts, which are read together", name)
			}
			experts[k] = d
		}
	}
	if !slices.Equal(experts, s.Device) {
		s.Experts = experts
		s.Sent = !slices.Contains(words, "--no-op-offload") && SendsWeights(s.Parts.Tokens(s.Graph))
	}
	return nil
}
