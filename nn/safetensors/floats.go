package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Floats returns x, row-major, as a tensor of that name and shape. It keeps shape and not x.
func Floats(name string, x []float32, shape ...int) Tensor {
	data := make([]byte, 0, 4*len(x))
	for _, v := range x {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return Tensor{Name: name, Type: F32, Shape: shape, Data: data}
}

// Floats returns the elements of t, row-major. It is an error if they are not F32, or one of
// them is not finite.
func (t *Tensor) Floats() ([]float32, error) {
	if t.Type != F32 {
		return nil, fmt.Errorf("%s is %s, want %s", t.Name, t.Type, F32)
	}
	x := make([]float32, len(t.Data)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		if v := x[i]; v-v != 0 { // an infinity or not a number
			return nil, fmt.Errorf("%s: element %d is %g", t.Name, i, v)
		}
	}
	return x, nil
}
