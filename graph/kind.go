package graph

// Kind names what an op computes. Names are TensorFlow's where TensorFlow has
// the op; importers map their own names to these where the meaning is the same
// and keep the foreign name where it is not.
type Kind string

// Class groups kinds by how they cost and fuse.
type Class uint8

// Classes of kinds.
const (
	ClassOther       Class = iota // unknown: costs its FLOPs and its bytes
	ClassInput                    // placeholder, iterator
	ClassVariable                 // holds parameters or optimizer slots
	ClassConst                    // holds a constant
	ClassMeta                     // launches no kernel: shape arithmetic, reshape, identity, control
	ClassGEMM                     // matrix product
	ClassConv                     // convolution, costed as a matrix product
	ClassElementwise              // one output element from the inputs' elements at its index
	ClassReduction                // sums, means, softmax, norms
	ClassMove                     // copies without arithmetic: concat, split, slice, transpose, pad, tile
	ClassGather                   // reads or writes the rows that indices name
	ClassPool                     // pooling windows
	ClassUpdate                   // optimizer update of a variable in place
	numClasses
)

var classNames = [numClasses]string{"other", "input", "variable", "const", "meta", "gemm", "conv", "elementwise", "reduction", "move", "gather", "pool", "update"}

func (c Class) String() string { return classNames[c] }

// NumClasses is the number of classes.
const NumClasses = int(numClasses)

// Facts is what every package needs to know of a kind.
type Facts struct {
	Class Class
	// FLOPsPerElement of the largest tensor the op touches, for kinds whose
	// builder gives no count.
	FLOPsPerElement float64
	// Fuse is the part that the kind can play in a fused kernel.
	Fuse FuseRole
	// InPlace says that an op of the kind only holds what others read where it lies: it takes
	// no time. TensorFlow's variables and constants are ops that its executor visits.
	InPlace bool
	// ReadsShape says that an op of the kind reads no element of its inputs, only
	// their shapes.
	ReadsShape bool
}

// FuseRole is the part that an op can play in a kernel fused of several ops.
type FuseRole uint8

// Roles in a fused kernel.
const (
	FuseNever  FuseRole = iota // is always a kernel of its own, or none
	FuseLoop                   // reads what the kernel has computed, and is read by it
	FuseReduce                 // reads what the kernel has computed; its result is complete when the kernel ends
	FuseAnchor                 // a library's kernel that goes on with what reads its result: a product, a convolution
	FuseView                   // launches nothing; in a fused kernel it passes its input on
)

var fuseNames = [...]string{"never", "loop", "reduce", "anchor", "view"}

func (r FuseRole) String() string { return fuseNames[r] }

// FactsOf returns the facts of k; an unknown kind is ClassOther with one
// operation an element, and known is false.
func FactsOf(k Kind) (f Facts, known bool) {
	f, known = kinds[k]
	if !known {
		f = Facts{Class: ClassOther, FLOPsPerElement: 1}
	}
	return f, known
}

// Launches reports whether ops of class c launch kernels.
func (c Class) Launches() bool {
	switch c {
	case ClassInput, ClassVariable, ClassConst, ClassMeta:
		return false
	}
	return true
}

// Leads reports whether an op of kind k has a kernel of its own where all is fused that
// compilers fuse: loops and views join the kernels beside them.
func (k Kind) Leads() bool {
	f, _ := FactsOf(k)
	return f.Class.Launches() && f.Fuse != FuseLoop && f.Fuse != FuseView
}

// Class returns the class of k.
func (k Kind) Class() Class { f, _ := FactsOf(k); return f.Class }
