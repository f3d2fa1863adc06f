package check

import (
	"fmt"
	"strings"

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

// fit looks for parts of the model, the ones that work most first, whose move to one
// other device leaves least missing; of moves after which the plan fits, the first.
func (x *checker) fit(f *Finding, d int) {
	best := x.score
	for to := range x.Machine.Devices {
		if to == d || x.result.PeakBytes[to] > x.Machine.Devices[to].Memory {
			continue
		}
		var ops []int32
		var parts []string
		for _, p := range x.partsOn(d)[:min(trials, len(x.partsOn(d)))] {
			own, _ := x.on(p, d)
			ops, parts = append(ops, own...), append(parts, x.name[p])
			s := x.try(x.moved(ops, to))
			if !s.Better(best) {
				continue
			}
			best = s
			f.Op, f.Ops, f.Tried = parts[0], len(ops), true
			f.Fix = fmt.Sprintf("move %s of %s to %s", listing(parts), f.Device, x.Machine.Devices[to].Name)
			if s.Feasible() {
				f.Fix += fmt.Sprintf(": then it fits, with a step of %v", units.Seconds(s.Value))
				break
			}
			f.Fix += fmt.Sprintf(": then %v are missing", s.Overflow)
		}
	}
	if f.Fix == "" {
		f.Fix = fmt.Sprintf("no part of the model moves elsewhere with less missing; more devices, or %v more on this one", f.Bytes)
	}
}

// listing names up to three things, and counts the others.
func listing(all []string) string {
	if len(all) <= 3 {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:3], ", "), len(all)-3)
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
