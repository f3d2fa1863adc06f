package check

import (
	"fmt"

	"placer/graph"
	"placer/internal/words"
)

// colocated finds co-location groups that are split.
func (x *checker) colocated() {
	device := x.Placement.Device
	count := map[int32]map[uint8]int{}
	var groups []int32
	for i, d := range device {
		if k := x.g.Op(graph.OpID(i)).Group; k > 0 && d != none {
			if count[k] == nil {
				count[k] = map[uint8]int{}
				groups = append(groups, k)
			}
			count[k][d]++
		}
	}
	for _, k := range groups {
		if len(count[k]) < 2 {
			continue
		}
		most := -1
		for d := range x.Machine.Devices {
			if n := count[k][uint8(d)]; n > 0 && (most < 0 || n > count[k][uint8(most)]) {
				most = d
			}
		}
		f := Finding{Rule: Colocation, Severity: Error}
		for i, d := range device {
			if x.g.Op(graph.OpID(i)).Group == k && d != none && int(d) != most {
				if f.Op == "" {
					f.Op, f.Device = x.g.Op(graph.OpID(i)).Name, x.Machine.Devices[d].Name
				}
				f.Ops++
			}
		}
		home := x.Machine.Devices[most].Name
		f.Message = fmt.Sprintf("%s must share a device with %s on %s", f.Op, words.Count(count[k][uint8(most)], "op that is", "ops that are"), home)
		f.Fix = fmt.Sprintf("move it to %s", home)
		x.report.Findings = append(x.report.Findings, f)
	}
}
