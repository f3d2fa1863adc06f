package nn

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"placer/nn/safetensors"
)

// Names of what a checkpoint holds for each parameter.
const (
	weightPrefix = "weight/"
	firstPrefix  = "adam.m/"
	secondPrefix = "adam.v/"
	stepPrefix   = "adam.step/"
)

// Checkpoint returns the weights of ps and, if a is not nil, the optimiser's
// state, with metadata. Equal weights, state and metadata give equal files.
func Checkpoint(ps *Params, a *Adam, metadata map[string]string) *safetensors.File {
	f := &safetensors.File{Metadata: maps.Clone(metadata)}
	for _, p := range ps.All() {
		f.Tensors = append(f.Tensors, safetensors.Floats(weightPrefix+p.Name, p.Value, p.Shape...))
		if a == nil || a.state[p] == nil {
			continue
		}
		s := a.state[p]
		f.Tensors = append(f.Tensors,
			safetensors.Floats(firstPrefix+p.Name, s.m, p.Shape...),
			safetensors.Floats(secondPrefix+p.Name, s.v, p.Shape...),
			safetensors.Tensor{Name: stepPrefix + p.Name, Type: safetensors.I64, Data: binary.LittleEndian.AppendUint64(nil, uint64(s.step))})
	}
	return f
}

// Fits reports that f lacks weights of the set that build makes, by their number, before
// memory is claimed for them.
func Fits(f *safetensors.File, build func(ps *Params)) error {
	have := 0
	for _, t := range f.Tensors {
		if strings.HasPrefix(t.Name, weightPrefix) {
			have += len(t.Data) / 4
		}
	}
	if _, ok := Measure(have, build); !ok {
		return fmt.Errorf("checkpoint: the configuration needs more weights than the %d that there are", have)
	}
	return nil
}

// Restore sets the weights of ps from f, and the optimiser's state if a is not
// nil and f has it. Every parameter must be in f with its shape and finite; f may
// hold more. ps and a are unchanged if there is an error.
func Restore(f *safetensors.File, ps *Params, a *Adam) error {
	byName := map[string]*safetensors.Tensor{}
	for i := range f.Tensors {
		byName[f.Tensors[i].Name] = &f.Tensors[i]
	}
	values := make([][]float32, len(ps.All()))
	states := make([]*moments, len(ps.All()))
	for i, p := range ps.All() {
		var err error
		if values[i], err = decode(byName, weightPrefix+p.Name, p.Shape); err != nil {
			return err
		}
		if a == nil || byName[stepPrefix+p.Name] == nil {
			continue
		}
		s := &moments{}
		if s.m, err = decode(byName, firstPrefix+p.Name, p.Shape); err != nil {
			return err
		}
		if s.v, err = decode(byName, secondPrefix+p.Name, p.Shape); err != nil {
			return err
		}
		if k := slices.IndexFunc(s.v, func(x float32) bool { return x < 0 }); k >= 0 {
			return fmt.Errorf("checkpoint: %s: element %d is %g, a mean of squares", secondPrefix+p.Name, k, s.v[k])
		}
		t := byName[stepPrefix+p.Name]
		if t.Type != safetensors.I64 || len(t.Data) != 8 {
			return fmt.Errorf("checkpoint: %s is %s %v, want one I64", t.Name, t.Type, t.Shape)
		}
		step := int64(binary.LittleEndian.Uint64(t.Data))
		if step < 0 || step > math.MaxInt32 {
			return fmt.Errorf("checkpoint: %s is %d", t.Name, step)
		}
		s.step = int(step)
		states[i] = s
	}
	for i, p := range ps.All() {
		copy(p.Value, values[i])
		if states[i] != nil {
			a.state[p] = states[i]
		}
	}
	return nil
}

// decode returns the tensor of that name, which must have the shape.
func decode(byName map[string]*safetensors.Tensor, name string, shape []int) ([]float32, error) {
	t := byName[name]
	if t == nil {
		return nil, fmt.Errorf("checkpoint: %s is missing", name)
	}
	if t.Type != safetensors.F32 || !slices.Equal(t.Shape, shape) {
		return nil, fmt.Errorf("checkpoint: %s is %s %v, want F32 %v", name, t.Type, t.Shape, shape)
	}
	x, err := t.Floats()
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return x, nil
}
