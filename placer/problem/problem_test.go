package problem_test

import (
	"strings"
	"testing"

	"placer/placer/problem"
)

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, gpu string
		gpus      int
		want      string
	}{
		{"rnnlmx", "p100", 2, "rnnlmx"},
		{"rnnlm2", "p101", 2, "p101"},
		{"rnnlm2", "p100", 99, "99"},
	} {
		p, err := problem.Workload(c.name, c.gpu, c.gpus, problem.Options{})
		if p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %d %s: error %v, want %q", c.name, c.gpus, c.gpu, err, c.want)
		}
	}
}
