package safetensors

// File is the content of a checkpoint. Read gives tensors in the order of their
// data.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor
}

// Tensor is a named array.
type Tensor struct {
	Name  string
	Type  dtype
	Shape []int
	Data  []byte // little-endian, row-major
}

// Lookup returns the tensor called name, or nil.
func (f *File) Lookup(name string) *Tensor {
	for i := range f.Tensors {
		if f.Tensors[i].Name == name {
			return &f.Tensors[i]
		}
	}
	return nil
}

// dtype is the element type, by the format's name.
type dtype string

// The types a checkpoint of ours uses.
const (
	F32 dtype = "F32"
	I64 dtype = "I64"
)

// bytes returns the size of an element, or 0 for an unknown type.
func (t dtype) bytes() int64 {
	switch t {
	case "BOOL", "U8", "I8":
		return 1
	case "F16", "BF16", "I16", "U16":
		return 2
	case F32, "I32", "U32":
		return 4
	case "F64", I64, "U64":
		return 8
	}
	return 0
}

// maxHeader is the format's limit.
const maxHeader = 100_000_000

// metadataKey is the header's one key that is no tensor.
const metadataKey = "__metadata__"

// entry is a tensor as the header describes it.
type entry struct {
	Type    dtype    `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}
