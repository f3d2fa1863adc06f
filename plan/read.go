package plan

import (
	"fmt"
	"io"
	"math"

	"placer/hw"
	"placer/internal/fsx"
	"placer/internal/jsonx"
	"placer/internal/words"
)

// ReadFile reads the plan file at path, which gzip may have compressed.
func ReadFile(path string) (*File, error) {
	data, err := fsx.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	return parse(data, path)
}

// Read reads a plan file (docs/formats.md), which gzip may have compressed. name is the file's name for errors,
// which say file, line, op and reason.
func Read(r io.Reader, name string) (*File, error) {
	data, err := fsx.Read(r, name, maxFile)
	if err != nil {
		return nil, err
	}
	return parse(data, name)
}

func parse(data []byte, name string) (*File, error) {
	f := &File{}
	if err := f.read(jsonx.New(data)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

func (f *File) read(r *jsonx.Reader) error {
	changed := false
	var named []namedOp
	err := r.Object(planKeys, 5, func(key int) (err error) {
		switch planKeys[key] {
		case "format":
			var s string
			if s, err = r.String(); err == nil && s != Format && s != ChangedFormat {
				err = r.Errorf("format is %q, want %q or %q", s, Format, ChangedFormat)
			}
			changed = s == ChangedFormat
		case "graph":
			f.GraphName, f.GraphHash, err = readRef(r)
		case "machine":
			f.MachineName, f.MachineHash, err = readRef(r)
		case "changes":
			err = f.readChanges(r)
		case "method":
			f.Method, err = r.String()
		case "devices":
			err = f.readDevices(r)
		case "device":
			err = r.Array(func(i int) error {
				d, err := r.Int(0, hw.MaxPlaced-1)
				if err != nil {
					return fmt.Errorf("device of op %d: %w", i, err)
				}
				f.Device = append(f.Device, uint8(d))
				return nil
			})
		case "priority":
			f.Priority = []int32{}
			err = r.Array(func(i int) error {
				p, err := r.Int(0, math.MaxInt32)
				if err != nil {
					return fmt.Errorf("priority of op %d: %w", i, err)
				}
				f.Priority = append(f.Priority, int32(p))
				return nil
			})
		case "fusion":
			f.Fusion = []uint8{}
			err = r.Array(func(i int) error {
				p, err := r.Int(0, math.MaxUint8)
				if err != nil {
					return fmt.Errorf("fusion of op %d: %w", i, err)
				}
				f.Fusion = append(f.Fusion, uint8(p))
				return nil
			})
		case "ops":
			f.Names = []string{}
			err = r.Members(func(_ int, name string) error {
				o, err := readNamed(r)
				if err != nil {
					return fmt.Errorf("op %q: %w", name, err)
				}
				f.Names = append(f.Names, name)
				named = append(named, o)
				return nil
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := r.End(); err != nil {
		return err
	}
	if changed == f.Changes.None() {
		return fmt.Errorf("changes go with format %q, and are in every such plan", ChangedFormat)
	}
	if err := f.check(); err != nil {
		return err
	}
	return f.checkNamed(named)
}

// namedOp is what the file says of an op by its name.
type namedOp struct {
	device   string
	priority int64 // -1: none
}

// readNamed reads [device, priority] or [device].
func readNamed(r *jsonx.Reader) (o namedOp, err error) {
	o.priority = -1
	n := 0
	err = r.Array(func(i int) (err error) {
		switch n++; i {
		case 0:
			o.device, err = r.String()
		case 1:
			o.priority, err = r.Int(0, math.MaxInt32)
		default:
			err = r.Errorf("want [device, priority] or [device]")
		}
		return err
	})
	if err == nil && n == 0 {
		err = r.Errorf("want [device, priority] or [device]")
	}
	return o, err
}

// checkNamed reports the first op of which the file says one thing by name and
// another in the arrays.
func (f *File) checkNamed(named []namedOp) error {
	for i, o := range named {
		priority := int64(-1)
		if f.Priority != nil {
			priority = int64(f.Priority[i])
		}
		if d := f.Devices[f.Device[i]]; o.device != d || o.priority != priority {
			return fmt.Errorf("op %d: %q is on %s with priority %d by its name, on %s with %d in the arrays", i, f.Names[i], o.device, o.priority, d, priority)
		}
	}
	return nil
}

// check reports the first contradiction within the file.
func (f *File) check() error {
	if len(f.Device) == 0 {
		return fmt.Errorf("plan places no op")
	}
	if f.GraphHash == "" || f.MachineHash == "" {
		return fmt.Errorf("plan has no hash of its graph or of its machine")
	}
	for i, d := range f.Device {
		if int(d) >= len(f.Devices) {
			return fmt.Errorf("op %d is on device %d, the file lists %s", i, d, words.Count(len(f.Devices), "device", "devices"))
		}
	}
	if f.Names != nil {
		if len(f.Names) != len(f.Device) {
			return fmt.Errorf("plan names %s of %d", words.Count(len(f.Names), "op", "ops"), len(f.Device))
		}
		taken := make(map[string]bool, len(f.Names))
		for i, name := range f.Names {
			if name == "" || taken[name] {
				return fmt.Errorf("op %d: name %q is empty or taken", i, name)
			}
			taken[name] = true
		}
	}
	if f.Fusion != nil && len(f.Fusion) != len(f.Device) {
		return fmt.Errorf("plan has %s for %s", words.Count(len(f.Fusion), "fusion priority", "fusion priorities"), words.Count(len(f.Device), "op", "ops"))
	}
	if f.Priority == nil {
		return nil
	}
	if len(f.Priority) != len(f.Device) {
		return fmt.Errorf("plan has %s for %s", words.Count(len(f.Priority), "priority", "priorities"), words.Count(len(f.Device), "op", "ops"))
	}
	seen := make([]bool, len(f.Priority))
	for i, p := range f.Priority {
		if p < 0 || int(p) >= len(seen) || seen[p] {
			return fmt.Errorf("op %d: priority %d is out of range or taken", i, p)
		}
		seen[p] = true
	}
	return nil
}

func readRef(r *jsonx.Reader) (name, hash string, err error) {
	err = r.Object(refKeys, 2, func(key int) (err error) {
		if refKeys[key] == "name" {
			name, err = r.String()
		} else if hash, err = r.String(); err == nil && hash == "" {
			err = r.Errorf("hash is empty")
		}
		return err
	})
	return name, hash, err
}

func (f *File) readChanges(r *jsonx.Reader) error {
	layers := func(to *[]int32) error {
		return r.Array(func(int) error {
			k, err := r.Int(1, math.MaxInt32)
			*to = append(*to, int32(k))
			return err
		})
	}
	return r.Object(changeKeys, 1, func(key int) (err error) {
		switch changeKeys[key] {
		case "hash":
			if f.ChangedHash, err = r.String(); err == nil && f.ChangedHash == "" {
				err = r.Errorf("hash is empty")
			}
		case "recompute":
			err = layers(&f.Changes.Recompute)
		case "offload":
			err = layers(&f.Changes.Offload)
		}
		return err
	})
}

func (f *File) readDevices(r *jsonx.Reader) error {
	seen := map[string]bool{}
	return r.Array(func(i int) error {
		s, err := r.String()
		if err != nil {
			return err
		}
		if s == "" || seen[s] || i >= hw.MaxPlaced {
			return r.Errorf("device %d: name %q is empty or taken, or more than %d devices", i, s, hw.MaxPlaced)
		}
		seen[s] = true
		f.Devices = append(f.Devices, s)
		return nil
	})
}
