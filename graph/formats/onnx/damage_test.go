package onnx

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// TestDamaged changes bytes of real files: whatever comes of it, no panic, and
// errors of one line.
func TestDamaged(t *testing.T) {
	models, _, names := readCases(t)
	for _, n := range []string{"light_squeezenet", "gpt2_one_layer", "gpt2_megatron"} {
		data, err := os.ReadFile("testdata/" + n + ".onnx")
		if err != nil {
			t.Fatal(err)
		}
		models[n+".onnx"] = data
		for range 100 {
			names = append(names, n)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	const trials = 30000
	for range trials {
		name := names[rng.IntN(len(names))]
		data := append([]byte(nil), models[name+".onnx"]...)
		for range 1 + rng.IntN(6) {
			i, j := rng.IntN(len(data)), rng.IntN(len(data))
			switch rng.IntN(4) {
			case 0:
				data[i] = byte(rng.Uint32())
			case 1:
				data[i] ^= 1 << rng.IntN(8)
			case 2:
				data[i] = []byte{0, 1, 2, 8, 10, 18, 0x7f, 0x80, 0xff}[rng.IntN(9)]
			case 3:
				n := min(rng.IntN(12), len(data)-i, len(data)-j)
				copy(data[i:i+n], data[j:j+n])
			}
		}
		_, _, err := Import(data, "m.onnx", Config{DefaultDim: 3})
		if err == nil {
			accepted++
		} else if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "m.onnx: ") {
			t.Errorf("%s: error is not one located line: %q", name, s)
		}
	}
	if accepted == 0 || accepted == trials {
		t.Errorf("%d of %d damaged files were accepted, want some", accepted, trials)
	}
}
