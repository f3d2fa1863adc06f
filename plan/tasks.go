package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Tasks is a set of decisions that a method makes; what is not in it is given.
type Tasks uint8

// Tasks (GO, section 4.4).
const (
	Place    Tasks = 1 << iota // a device for each op
	Schedule                   // a priority for each op
	Fuse                       // a fusion priority for each op

	AllTasks = Place | Schedule | Fuse
)

var taskNames = [...]string{"place", "schedule", "fuse"}

// Has reports whether t holds all of u.
func (t Tasks) Has(u Tasks) bool { return t&u == u }

// String lists the tasks, "place,schedule,fuse".
func (t Tasks) String() string {
	var names []string
	for k, n := range taskNames {
		if t.Has(1 << k) {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// ParseTasks reads what String prints, in any order, each task once and at least
// one.
func ParseTasks(s string) (t Tasks, err error) {
	for _, n := range strings.Split(s, ",") {
		k := slices.Index(taskNames[:], strings.TrimSpace(n))
		if k < 0 || t.Has(1<<k) {
			return 0, fmt.Errorf("tasks %q: %q is no task or named twice, want some of %s", s, n, AllTasks)
		}
		t |= 1 << k
	}
	return t, nil
}
