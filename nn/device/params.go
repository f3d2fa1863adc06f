package device

import (
	"unsafe"

	"placer/hw/gpu"
	"placer/nn"
)

// resident is a parameter on the device. The host's value and gradient are out of
// date while held, its moments while moments is set.
type resident struct {
	value, grad, m, v gpu.Ptr
	held              bool
	moments           bool
	hostM, hostV      []float32
}

// param returns where p is, with the host's data if the host had them.
func (d *Device) param(p *nn.Param) *resident {
	r := d.params[p]
	if r == nil {
		n := 4 * len(p.Value)
		r = &resident{value: d.alloc(n), grad: d.alloc(n), m: d.alloc(n), v: d.alloc(n)}
		if d.err != nil {
			for _, x := range []gpu.Ptr{r.value, r.grad, r.m, r.v} {
				if x != 0 {
					d.driver.Free(x) // the failure that counts came before
				}
			}
			return &resident{}
		}
		d.params[p] = r
	}
	if !r.held {
		upload(d, r.value, p.Value)
		upload(d, r.grad, p.Grad)
		r.held = d.err == nil
	}
	return r
}

// Squares is as nn.Device says.
func (d *Device) Squares(ps []*nn.Param) (sum float64, err error) {
	defer d.leave(&err)
	d.enter()
	out := d.scratch(keySquares, 8*squareWarps*len(ps))
	for i, p := range ps {
		d.launch(kSquares, squareBlocks, block, uint64(d.param(p).grad), uint64(len(p.Value)), uint64(out)+uint64(8*squareWarps*i))
	}
	return d.dsum(out, squareWarps*len(ps), 1)[0], nil
}

// Step is as nn.Device says.
func (d *Device) Step(steps []nn.DeviceStep) (err error) {
	defer d.leave(&err)
	d.enter()
	for _, s := range steps {
		r, c := d.param(s.Param), s.Constants
		if !r.moments || unsafe.SliceData(r.hostM) != unsafe.SliceData(s.M) {
			upload(d, r.m, s.M)
			upload(d, r.v, s.V)
			if d.err == nil {
				r.moments, r.hostM, r.hostV = true, s.M, s.V
			}
		}
		n := len(s.Param.Value)
		d.each(kAdam, n, uint64(r.value), uint64(r.m), uint64(r.v), uint64(r.grad), uint64(n), bits(c.Scale), bits(c.Beta1), bits(c.Beta2), bits(c.Rate), bits(c.Epsilon))
	}
	d.sync()
	return nil
}

// Clear is as nn.Device says.
func (d *Device) Clear(ps []*nn.Param) (err error) {
	defer d.leave(&err)
	d.enter()
	for _, p := range ps {
		d.each(kZero, len(p.Value), uint64(d.param(p).grad), uint64(len(p.Value)))
	}
	return nil
}

// Fetch is as nn.Device says.
func (d *Device) Fetch(ps []*nn.Param) (err error) {
	defer d.leave(&err)
	d.enter()
	d.fetch(ps)
	return nil
}

// fetch gives ps to the host, all or, after a failure, none.
func (d *Device) fetch(ps []*nn.Param) {
	for _, p := range ps {
		r := d.params[p]
		if r == nil {
			continue
		}
		if r.held {
			download(d, p.Value, r.value)
			download(d, p.Grad, r.grad)
		}
		if r.moments {
			download(d, r.hostM, r.m)
			download(d, r.hostV, r.v)
		}
	}
	d.sync()
	for _, p := range ps {
		if r := d.params[p]; r != nil && d.err == nil {
			r.held, r.moments = false, false
		}
	}
}

// Release is as nn.Device says. Parameters that the device does not know, nil
// among them, are no error.
func (d *Device) Release(ps []*nn.Param) (err error) {
	defer d.leave(&err)
	d.enter()
	if d.fetch(ps); d.err != nil {
		return nil // leave reports it; what only the device knows stays there
	}
	for _, p := range ps {
		d.release(p)
	}
	return nil
}

func (d *Device) release(p *nn.Param) {
	if r := d.params[p]; r != nil {
		for _, x := range []gpu.Ptr{r.value, r.grad, r.m, r.v} {
			d.free(x)
		}
		delete(d.params, p)
	}
}
