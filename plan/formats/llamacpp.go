package formats

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"placer/hw"
)

// llama.cpp counts the layers of the stack and the output as one more. The last -ngl of
// them are on GPUs; of those, layer i is on the first GPU k for which i is below the
// share of -ts up to k. The embedding's table is on the CPU always, where a lookup is
// (llama_model::load_tensors; tools/server/README.md).

func writeLlama(w io.Writer, s *Split) error {
	n, err := s.counts()
	if err != nil {
		return err
	}
	order := Accelerators(s.Machine)
	if s.Machine.Devices[order[0]].Kind != hw.GPU {
		_, err = fmt.Fprintln(w, "llama-server -m MODEL.gguf -ngl 0")
		return err
	}
	total := s.Parts.Layers() + 1 // the output counts as a layer, the last device's
	shares := slices.Clone(n)
	shares[len(shares)-1]++
	for len(shares) < len(order) {
		shares = append(shares, 0)
	}
	_, err = fmt.Fprintf(w, "llama-server -m MODEL.gguf -ngl %d -sm layer -ts %s\n", total, join(shares, ","))
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
	var gpus []uint8
	cpu := -1
	for d := range s.Machine.Devices {
		if s.Machine.Devices[d].Kind == hw.GPU {
			gpus = append(gpus, uint8(d))
		} else if cpu < 0 {
			cpu = d
		}
	}
	if len(gpus) == 0 {
		active = 0
	}
	if cpu < 0 && active < layers {
		return fmt.Errorf("%d layers are on the CPU, which machine %s does not have", layers-active, s.Machine.Name)
	}
	share := make([]float64, len(gpus))
	for i := range share {
		share[i] = 1
	}
	if found := llamaShares.FindSubmatch(data); found != nil {
		for i, text := range regexp.MustCompile(`[,/]`).Split(string(found[1]), -1) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || x < 0 || i >= len(share) && x > 0 {
				return fmt.Errorf("share %d of -ts is %q, machine %s has %d GPUs", i, text, s.Machine.Name, len(gpus))
			}
			if i < len(share) {
				share[i] = x
			}
		}
	}
	total := 0.0
	for _, x := range share {
		total += x
	}
	if active > 0 && total == 0 {
		return fmt.Errorf("-ts gives no GPU a share")
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
	return nil
}
