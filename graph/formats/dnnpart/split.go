package dnnpart

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"placer/graph"
	"placer/graph/formats/foreign"
)

// Split is an assignment of the ops to devices, accelerators first, as the
// machine of the instance lists them.
type Split struct {
	Device []uint8 // [N]; the CPU cores follow the accelerators
	// MaxLoad is the load the file claims, in milliseconds; negative where it makes
	// no claim.
	MaxLoad float64
}

type splitFile struct {
	MaxLoad *float64 `json:"maxLoad,omitempty"`
	FPGAs   []part   `json:"fpgas"`
	CPUs    []part   `json:"cpus"`
}

type part struct {
	Nodes []int64  `json:"nodes"`
	Load  *float64 `json:"load,omitempty"`
}

// ReadSplit reads a split of x for a machine of k accelerators with the CPU
// cores behind them. An op that the split leaves out goes where the ops of its
// co-location group are: expert splits name forward nodes alone.
func (x *Instance) ReadSplit(data []byte, name string) (*Split, error) {
	return foreign.Import(data, name, x.split)
}

func (x *Instance) split(f *splitFile) (*Split, error) {
	k, l := x.Times.Models[0].Count, x.Times.Models[1].Count
	if len(f.FPGAs) > k || len(f.CPUs) > l {
		return nil, fmt.Errorf("the split uses %d accelerators and %d CPU cores, the instance has %d and %d", len(f.FPGAs), len(f.CPUs), k, l)
	}
	s := &Split{Device: make([]uint8, len(x.IDs)), MaxLoad: -1}
	if f.MaxLoad != nil {
		s.MaxLoad = *f.MaxLoad
	}
	at := make(map[int64]int, len(x.IDs))
	for i, id := range x.IDs {
		at[id] = i
	}
	placed := make([]bool, len(x.IDs))
	put := func(parts []part, first int, kind string) error {
		for d, p := range parts {
			for _, id := range p.Nodes {
				i, ok := at[id]
				if !ok {
					return fmt.Errorf("%s %d: node %d does not exist", kind, d, id)
				}
				if placed[i] {
					return fmt.Errorf("%s %d: node %d is placed twice", kind, d, id)
				}
				placed[i], s.Device[i] = true, uint8(first+d)
			}
		}
		return nil
	}
	if err := put(f.FPGAs, 0, "accelerator"); err != nil {
		return nil, err
	}
	if err := put(f.CPUs, k, "CPU core"); err != nil {
		return nil, err
	}
	group := map[int32]uint8{}
	for i, ok := range placed {
		if c := x.Graph.Op(graph.OpID(i)).Group; ok && c > 0 {
			group[c] = s.Device[i]
		}
	}
	for i, ok := range placed {
		if ok {
			continue
		}
		d, known := group[x.Graph.Op(graph.OpID(i)).Group]
		if !known {
			return nil, fmt.Errorf("node %d is not placed, and no node that must share its device is", x.IDs[i])
		}
		s.Device[i] = d
	}
	return s, nil
}

// WriteSplit writes a placement of x, [N], in the file's form. load, [D], are
// the devices' loads in milliseconds, accelerators first.
func (x *Instance) WriteSplit(w io.Writer, device []uint8, load []float64) error {
	k, l := x.Times.Models[0].Count, x.Times.Models[1].Count
	if len(device) != len(x.IDs) || len(load) != k+l {
		panic(fmt.Sprintf("dnnpart: %d devices and %d loads for %d ops and %d devices", len(device), len(load), len(x.IDs), k+l))
	}
	most := slices.Max(load)
	f := splitFile{MaxLoad: &most, FPGAs: make([]part, k), CPUs: make([]part, l)}
	parts := make([]*part, 0, k+l)
	for d := range f.FPGAs {
		parts = append(parts, &f.FPGAs[d])
	}
	for d := range f.CPUs {
		parts = append(parts, &f.CPUs[d])
	}
	for d, p := range parts {
		p.Load, p.Nodes = &load[d], []int64{}
	}
	for i, d := range device {
		if int(d) >= len(parts) {
			return fmt.Errorf("op %d (%s) is on device %d, the instance has %d", i, x.Graph.Op(graph.OpID(i)).Name, d, len(parts))
		}
		parts[d].Nodes = append(parts[d].Nodes, x.IDs[i])
	}
	for _, p := range parts {
		slices.Sort(p.Nodes)
	}
	data, err := json.Marshal(&f)
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}
