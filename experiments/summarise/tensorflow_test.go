package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The recorded agreements of experiments/tensorflow are Kendall's tau-b of the recorded rows:
// tied pairs neither agree nor disagree.
func TestTensorFlowTaus(t *testing.T) {
	dir := filepath.Join("..", "tensorflow")
	for _, c := range []struct{ name, x, y, key string }{
		{"lstm", "predicted_s", "measured_s", ""}, {"inception", "predicted_s", "measured_s", ""},
		{"virtual", "placer_s", "grappler_s", ""}, {"virtual", "without_launches_s", "grappler_s", "without_launches"},
	} {
		var x, y []float64
		data, err := os.ReadFile(filepath.Join(dir, c.name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			var row map[string]any
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				t.Fatal(err)
			}
			x, y = append(x, row[c.x].(float64)), append(y, row[c.y].(float64))
		}
		var doc map[string]any
		if data, err = os.ReadFile(filepath.Join(dir, c.name+".json")); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		if c.key != "" {
			doc = doc[c.key].(map[string]any)
		}
		if want := tauB(x, y); math.Abs(doc["tau"].(float64)-want) > 5e-5 {
			t.Errorf("%s %s: recorded %v, the rows have %.4f", c.name, c.key, doc["tau"], want)
		}
	}
}

// tauB is Kendall's tau-b by its definition: concordant less discordant pairs, over the
// geometric mean of the pairs that each list does not tie.
func tauB(x, y []float64) float64 {
	var concordant, discordant, untiedX, untiedY float64
	for i := range x {
		for j := range i {
			switch p := (x[i] - x[j]) * (y[i] - y[j]); {
			case p > 0:
				concordant++
			case p < 0:
				discordant++
			}
			if x[i] != x[j] {
				untiedX++
			}
			if y[i] != y[j] {
				untiedY++
			}
		}
	}
	return (concordant - discordant) / math.Sqrt(untiedX*untiedY)
}
