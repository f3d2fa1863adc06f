package strategies

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"placer/graph"
	"placer/graph/formats/onnx"
	"placer/graph/strategy"
	"placer/graph/train"
	"placer/hw"
	"placer/internal/published"
)

// resnet50 is the training step of the ONNX project's ResNet-50 with momentum, at any
// batch.
func resnet50(t *testing.T) Family {
	t.Helper()
	file := filepath.Join(published.Folder(t, "onnx"), "onnx-light", "light_resnet50.onnx")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = published.OpenBatch(data); err != nil {
		t.Fatal(err)
	}
	return func(batch int64) (*graph.Graph, error) {
		c := onnx.Default()
		c.Training, c.Dims = true, map[string]int64{"batch": batch}
		g, _, err := onnx.Import(data, file, c)
		if err != nil {
			return nil, err
		}
		how := train.Default()
		if how.Optimizer, err = train.ParseOptimizer("momentum"); err != nil {
			return nil, err
		}
		return train.Derive(g, how)
	}
}

// TestPublishedScaling compares data parallel steps of ResNet-50 with a published table: how many
// times the images a second of one GPU 2, 4 and 8 do, at so many images for each. NVIDIA
// DeepLearningExamples, MxNet/Classification/RN50v1.5, "Training performance" in TF32 on a DGX A100
// and in FP32 on a DGX-1, MXNet 20.12 (the graph's products are f32, so those columns; TF32 is what
// they run in on an A100). No figure of these machines comes from these rows.
func TestPublishedScaling(t *testing.T) {
	family := resnet50(t)
	for _, p := range []struct {
		machine string
		images  int64 // for each GPU
		speedup map[int]float64
		first   float64 // images a second of one GPU
	}{
		{"a100", 256, map[int]float64{2: 1.98, 4: 3.94, 8: 7.82}, 1022},
		{"v100", 96, map[int]float64{2: 1.98, 4: 3.94, 8: 7.82}, 384},
	} {
		rate := func(n int) float64 {
			m, err := hw.Take(p.machine, n, false)
			if err != nil {
				t.Fatal(err)
			}
			j, err := NewJudge(source(), m)
			if err != nil {
				t.Fatal(err)
			}
			j.Eager = true // MXNet runs ops one by one
			x := newModels(family, p.images*int64(n))
			s := strategy.Strategy{Mesh: strategy.Mesh{Data: n, Pipeline: 1, Tensor: 1}, MicroBatches: 1, Chunks: 1, Bucket: strategy.DefaultBucket}
			step, err := x.step(j, s)
			if err != nil {
				t.Fatal(err)
			}
			r, err := j.Run(step)
			if err != nil {
				t.Fatal(err)
			}
			return float64(p.images*int64(n)) / r.Seconds
		}
		one := rate(1)
		t.Logf("%s: one GPU does %.0f images/s, published %.0f (%+.1f%%)", p.machine, one, p.first, 100*(one/p.first-1))
		for _, n := range []int{2, 4, 8} {
			got, want := rate(n)/one, p.speedup[n]
			t.Logf("%s: %d GPUs do %.2f times as many, published %.2f (%+.1f%%)", p.machine, n, got, want, 100*(got/want-1))
			if math.Abs(got/want-1) > 0.1 {
				t.Errorf("%s: %d GPUs do %.2f times as many images as one, published %.2f: off by more than 10%%", p.machine, n, got, want)
			}
		}
	}
}
