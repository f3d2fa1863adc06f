package hlo

import (
	"regexp"
	"strings"

	"placer/graph/formats/foreign"
)

var wrapped = regexp.MustCompile(`^(?:jvp|transpose|vmap|remat|checkpoint|rematted_computation|custom_jvp|custom_vjp)\((.*)\)$`)

// rematted is what JAX names what is computed again.
const rematted = "rematted_computation"

// modulePath returns the path of the module in the name that JAX gives an operation:
// "jit(step)/jit(main)/transpose(jvp(Model))/layer_0/dot_general" is of Model.layer_0.
func modulePath(scope string) string {
	if scope == "" {
		return ""
	}
	parts := strings.Split(scope, "/")
	var path []string
	for _, p := range parts[:len(parts)-1] {
		wraps := strings.HasSuffix(p, ")")
		for range 4 {
			inner := wrapped.FindStringSubmatch(p)
			if inner == nil {
				break
			}
			p = inner[1]
		}
		if p == "" || strings.ContainsAny(p, "()") || strings.Contains(p, "->") || p == "while" || p == "body" || p == "cond" || p == "scan" || p == "checkpoint" || p == rematted {
			continue
		}
		if wraps && len(path) == 1 && path[0] == p { // a model that is computed again, transpose(jvp(Model))/jvp(Model)/checkpoint
			continue
		}
		path = append(path, p)
	}
	return foreign.Clean(strings.Join(path, "."))
}
