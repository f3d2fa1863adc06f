package stages

import (
	"slices"

	"placer/plan"
)

// Accelerate is "accelerate": infer_auto_device_map of Hugging Face's accelerate. It
// goes through the modules in order and fills one device after another by memory. The
// first device, and the CPU, keep room for the largest module, which may have to be
// brought in. https://huggingface.co/docs/accelerate/concept_guides/big_model_inference
func Accelerate() plan.Placer {
	return method{"accelerate", func(m *model) []uint8 {
		order := slices.Clone(m.order)
		if m.host >= 0 {
			order = append(order, uint8(m.host))
		}
		largest := 0.0
		for _, b := range m.bytes {
			largest = max(largest, b)
		}
		room := func(i int) float64 {
			free := float64(m.p.Machine.Devices[order[i]].Memory)
			if i == 0 || int(order[i]) == m.host {
				free -= largest
			}
			return free
		}
		of := make([]uint8, len(m.bytes))
		at, free := 0, room(0)
		for k, b := range m.bytes {
			for b > free && at+1 < len(order) {
				at++
				free = room(at)
			}
			of[k] = order[at]
			free -= b
		}
		return of
	}}
}

// VLLM is "vllm": get_pp_indices of vLLM. Each stage has an even share of the layers;
// those that are left go to the stages before the last, one each from its end on.
func VLLM() plan.Placer {
	return method{"vllm", func(m *model) []uint8 {
		n := max(m.parts.Layers(), 1)
		s := min(len(m.order), n)
		count := make([]int, s)
		for i := range count {
			count[i] = n / s
		}
		for i := range n % s {
			count[s-2-i]++
		}
		return m.byLayers(count)
	}}
}

// LlamaCPP is "llama.cpp": its default split of layers over GPUs, by the memory of each.
// The output counts as one layer more, which may be alone on its GPU; with few layers the
// last GPUs have none. What is before the stack is with its first layer, as package formats
// says.
func LlamaCPP() plan.Placer { return method{"llama.cpp", (*model).byMemory} }

// byMemory is the default of llama.cpp's --tensor-split.
func (m *model) byMemory() []uint8 {
	n := m.parts.Layers() + 1
	total := 0.0
	for _, d := range m.order {
		total += float64(m.p.Machine.Devices[d].Memory)
	}
	count := make([]int, len(m.order))
	last := 0 // GPU of the output
	for l := range n {
		sum := 0.0
		last = len(m.order) - 1
		for i, d := range m.order {
			if sum += float64(m.p.Machine.Devices[d].Memory); float64(l)/float64(n) < sum/total {
				last = i
				break
			}
		}
		if l < n-1 {
			count[last]++
		}
	}
	return m.byLayers(count[:last+1])
}

// TorchTitan is "torchtitan": generate_llm_fqn_per_model_part of torchtitan. The
// embedding and the output count as a layer each; what is left goes to the first stages. It
// takes as many stages as there are layers, these two counted: the first has the embedding
// and the last the output, alone where there are that many.
func TorchTitan() plan.Placer {
	return method{"torchtitan", func(m *model) []uint8 {
		n := m.parts.Layers() + 2
		s := min(len(m.order), n)
		count := make([]int, s)
		for i := range count {
			count[i] = n / s
			if i < n%s {
				count[i]++
			}
		}
		count[0]--
		count[s-1]--
		return m.byLayers(count)
	}}
}

// byLayers returns the devices of stages with so many layers each: parts before the
// stack are on the first, parts behind it on the last, with layers or without.
func (m *model) byLayers(count []int) []uint8 {
	of := make([]uint8, len(m.parts.List))
	_, last := m.stack()
	stage, left := 0, count[0]
	for k, x := range m.parts.List {
		switch {
		case x.Layer >= 0:
			for left == 0 && stage+1 < len(count) {
				stage++
				left = count[stage]
			}
			left--
		case k > last && last >= 0:
			stage = len(count) - 1
		}
		of[k] = m.order[stage]
	}
	return of
}
