package python

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"placer/hw"
)

// Runtime is a framework that runs steps, by a package of Python.
type Runtime struct {
	Name    string   // of --runtime
	Title   string   // of the framework
	Package string   // of Python
	Install string   // what prints a python that has it
	Clocks  []string // that may decide (see Clock)
	Program string   // what lies beside the graph
}

// Clock is the one that decides where nobody names one: the first, and with GPUs, whose
// work no processor time counts, the last, which is the wall clock.
func (r Runtime) Clock(m *hw.Machine) string {
	if slices.ContainsFunc(m.Devices, func(d hw.Device) bool { return d.Kind != hw.CPU }) {
		return r.Clocks[len(r.Clocks)-1]
	}
	return r.Clocks[0]
}

// Torch runs steps of PyTorch: on cores a process a device, on GPUs all in one.
func Torch() Runtime {
	return Runtime{"torch", "PyTorch", "placer_torch", "python/install_torch.sh", []string{"virtual", "wall"}, "program.pt"}
}

// TensorFlow runs steps of TensorFlow on logical devices of one session. Its threads
// are not Python's, so that the wall clock alone can decide.
func TensorFlow() Runtime {
	return Runtime{"tensorflow", "TensorFlow", "placer_tensorflow", "python/install_tensorflow.sh", []string{"wall"}, "step.npz"}
}

// Runtimes lists the frameworks.
func Runtimes() []Runtime { return []Runtime{Torch(), TensorFlow()} }

// Find returns the runtime of that name.
func Find(name string) (Runtime, bool) {
	for _, r := range Runtimes() {
		if r.Name == name {
			return r, true
		}
	}
	return Runtime{}, false
}

// ErrNone says that there is no Python with a framework and its package, or that they
// have no such device.
var ErrNone = errors.New("no framework of Python")

// missing is an ErrNone.
type missing struct{ text string }

func (e *missing) Error() string        { return e.text }
func (e *missing) Is(target error) bool { return target == ErrNone }

func (r Runtime) none(reason string) error {
	return &missing{fmt.Sprintf("no %s: %s; %s prints a python that has it, for --python", r.Title, reason, r.Install)}
}

// lacks is the error of a device that is not there.
func (r *Ready) lacks(device, why string) error {
	title := r.Runtime
	if known, ok := Find(r.Runtime); ok {
		title = known.Title
	}
	return &missing{fmt.Sprintf("no %s on %s: %s, this host has %s", title, device, why, strings.Join(r.Devices, ", "))}
}
