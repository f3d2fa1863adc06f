package check

import (
	"fmt"

	"placer/hw"
	"placer/units"
)

// memory finds devices whose peak is above their memory, and the part of the model whose
// move makes the plan fit, or what comes nearest.
func (x *checker) memory() {
	for d, peak := range x.result.PeakBytes {
		v := &x.Machine.Devices[d]
		over := peak - v.Memory
		if over <= 0 {
			continue
		}
		f := Finding{Rule: DoesNotFit, Severity: Error, Device: v.Name, Bytes: over, Message: fmt.Sprintf("%s needs %v and has %v: %v (%d bytes) are missing", v.Name, peak, v.Memory, over, int64(over))}
		x.fit(&f, d)
		x.report.Findings = append(x.report.Findings, f)
	}
}

// fit looks for a move that leaves least missing, of those the one with the shortest step.
func (x *checker) fit(f *Finding, d int) {
	best := x.score
	tried := 0
	for _, p := range x.partsOn(d) {
		ops, _ := x.on(p, d)
		for to := range x.Machine.Devices {
			if to == d || x.result.PeakBytes[to] > x.Machine.Devices[to].Memory || tried == trials {
				continue
			}
			tried++
			if s := x.try(x.moved(ops, to)); s.Better(best) {
				best = s
				f.Op, f.Ops = x.name[p], len(ops)
				f.Fix = fmt.Sprintf("move %s of %s to %s", x.name[p], f.Device, x.Machine.Devices[to].Name)
				if s.Feasible() {
					f.Fix += fmt.Sprintf(": then it fits, with a step of %v", units.Seconds(s.Value))
				} else {
					f.Fix += fmt.Sprintf(": then %v are missing", s.Overflow)
				}
				f.Tried = true
			}
		}
	}
	if f.Fix == "" {
		f.Fix = fmt.Sprintf("no single part of the model moves elsewhere with less missing; more devices, or %v more on this one", f.Bytes)
	}
}

// busyLeast is the part of the step that a device which is not idle is busy.
const busyLeast = 1e-4

// idle finds GPUs that run nothing while others do.
func (x *checker) idle() {
	busiest := x.busiest()
	for d := range x.Machine.Devices {
		v := &x.Machine.Devices[d]
		if v.Kind != hw.GPU || float64(x.result.Busy[d]) > busyLeast*float64(x.result.Makespan) {
			continue
		}
		f := Finding{Rule: IdleDevice, Severity: Warning, Device: v.Name, Seconds: x.result.Makespan, Message: fmt.Sprintf("%s runs nothing, or next to it, while %s is busy for %v", v.Name, x.Machine.Devices[busiest].Name, x.result.Busy[busiest])}
		x.share(&f, busiest, d)
		x.report.Findings = append(x.report.Findings, f)
	}
}

// share looks for a number of the parts of device from, the last of the model, that are
// worth moving to device to.
func (x *checker) share(f *Finding, from, to int) {
	var parts []int32 // in the order of the model
	seen := map[int32]bool{}
	for i, p := range x.part {
		if int(x.now.Device[i]) == from && !seen[p] {
			seen[p] = true
			parts = append(parts, p)
		}
	}
	best := x.score
	for _, keep := range []int{len(parts) / 4, len(parts) / 2, 3 * len(parts) / 4} {
		var ops []int32
		for _, p := range parts[keep:] {
			o, _ := x.on(p, from)
			ops = append(ops, o...)
		}
		if s := x.try(x.moved(ops, to)); s.Better(best) {
			best = s
			f.Op, f.Ops, f.Tried = x.name[parts[keep]], len(ops), true
			f.Fix = fmt.Sprintf("move %s and what follows it on %s there", x.name[parts[keep]], x.Machine.Devices[from].Name)
			if s.Feasible() && x.score.Feasible() {
				f.Gain = units.Seconds(x.score.Value - s.Value)
			}
		}
	}
	if f.Fix == "" {
		f.Tried = true
		f.Fix = "leave the device out: no quarter, half or three quarters of " + x.Machine.Devices[from].Name + "'s parts are faster there"
	}
}

// busiest returns the device that computes longest.
func (x *checker) busiest() (busiest int) {
	for d, b := range x.result.Busy {
		if b > x.result.Busy[busiest] {
			busiest = d
		}
	}
	return busiest
}
