//go:build !light

package cli

import (
	"bytes"
	"strings"
	"testing"

	"placer/hw"
	"placer/internal/dispatch"
	"placer/placer/problem"
	"placer/workloads"
)

// TestWorkersOfOtherVersions: a worker serves searches whose scores it computes to the bit,
// and no others.
func TestWorkersOfOtherVersions(t *testing.T) {
	g, err := workloads.Build("rnnlm:layers=1,unroll=2")
	if err != nil {
		t.Fatal(err)
	}
	m, err := hw.Take("p100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := problem.Simulator(problem.Source{Graph: g}, m, problem.Options{Scheduler: problem.CriticalPath, Contention: "fair-share"})
	if err != nil {
		t.Fatal(err)
	}
	var graphText, machineText bytes.Buffer
	if err := g.Write(&graphText); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(&machineText); err != nil {
		t.Fatal(err)
	}
	scores := scoresOf(s, m.NumDevices())
	for _, c := range []struct{ name, settings, want string }{
		{"the same", simulating{"fair-share", scores}.String(), ""},
		{"other transfers", simulating{"fifo", scores}.String(), "another version of placer"},
		{"other scores", simulating{"fair-share", "0123456789abcdef"}.String(), "simulates other steps"},
		{"an earlier version", "fair-share", "the search is of another version of placer"},
	} {
		_, err := rooflineEvaluator(dispatch.Problem{Kind: dispatch.Roofline, Graph: graphText.Bytes(), Machine: machineText.Bytes(), Settings: c.settings})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}
