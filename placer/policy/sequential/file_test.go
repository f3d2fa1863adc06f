package sequential

import (
	"bytes"
	"testing"
)

func TestPolicyFile(t *testing.T) {
	p := policy(t, 8)
	p.Card = Card{Trained: []string{"a"}, HeldOut: []string{"b"}, Steps: 3, Results: []Result{{Workload: "w", Devices: 2, Best: 0.5}}}
	p.training = distributionOf([]trainingGraph{{"a", 0, instanceOf(t, small).summary()}, {"b", 0, make([]float32, 2*numUnitFeatures)}})
	q, err := Read(written(t, p), "f")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written(t, q), written(t, p)) {
		t.Error("a policy changes on its way through a file")
	}
	if _, err := Read([]byte("{}"), "f"); err == nil {
		t.Error("a file that is no policy was read")
	}
}
