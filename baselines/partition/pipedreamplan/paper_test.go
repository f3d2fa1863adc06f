package pipedreamplan_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"placer/baselines/partition/pipedreamplan"
	"placer/graph/formats/pipedream"
	"placer/internal/published"
)

// Ethernet of 25 Gb/s, which joins the servers of PipeDream's second cluster.
const ethernet = 3.125e9

// of returns workers of one level, joined by it.
func of(workers int) []pipedreamplan.Level {
	return []pipedreamplan.Level{{Width: workers, Bandwidth: ethernet}}
}

func vgg16(t testing.TB) *pipedreamplan.Chain {
	t.Helper()
	data, err := os.ReadFile("testdata/vgg16.graph.txt")
	if err != nil {
		t.Fatal(err)
	}
	x, err := pipedream.Import(data, "vgg16")
	if err != nil {
		t.Fatal(err)
	}
	return pipedreamplan.FromProfile(x)
}

// TestVGG16 is PipeDream's best known plan: the convolutions replicated on all
// workers but one, the layers of many parameters on that one.
func TestVGG16(t *testing.T) {
	c := vgg16(t)
	for workers, want := range map[int]string{4: "3-1", 8: "7-1", 16: "15-1"} {
		p, err := pipedreamplan.Solve(c, of(workers))
		if err != nil {
			t.Fatal(err)
		}
		if got := pipedreamplan.Shape(p.Stages); got != want {
			t.Errorf("%d workers: %s, want %s", workers, got, want)
		}
		if data, err := pipedreamplan.Cut(c, []int{workers}, of(workers)); err != nil || p.Seconds > data.Seconds {
			t.Errorf("%d workers: %v s, data parallel %v, error %v", workers, p.Seconds, data, err)
		}
	}
	data, err := os.ReadFile("testdata/vgg16_16_hybrid_conf.json")
	if err != nil {
		t.Fatal(err)
	}
	conf, err := pipedream.ReadConf(data, "hybrid_conf.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipedreamplan.Solve(c, of(16))
	if err != nil {
		t.Fatal(err)
	}
	published, err := pipedreamplan.Cut(c, conf.Replicas(), of(16))
	if err != nil || math.Abs(published.Seconds-p.Seconds) > 1e-12 {
		t.Errorf("published configuration %v: %v s, error %v, the plan takes %v s", conf.Replicas(), published, err, p.Seconds)
	}
}

// TestLevels: the plan costs what it says at the levels where it lies, the same
// configuration is no slower as a rival, and no rival is better than the plan.
func TestLevels(t *testing.T) {
	c := vgg16(t)
	for _, widths := range [][]int{{4, 1}, {2, 2}, {1, 4}, {8, 2}, {2, 2, 2}} {
		var levels []pipedreamplan.Level
		all := 1
		for k, w := range widths {
			levels = append(levels, pipedreamplan.Level{Width: w, Bandwidth: []float64{12e9, 1e9, 5e8}[k]})
			all *= w
		}
		p, err := pipedreamplan.Solve(c, levels)
		if err != nil {
			t.Fatal(err)
		}
		var replicas []int
		slowest := 0.
		for k, s := range p.Stages {
			replicas = append(replicas, s.Replicas)
			slowest = max(slowest, p.Costs[k].Compute, p.Costs[k].Sync, p.Costs[k].Transfer)
		}
		same, err := pipedreamplan.Cut(c, replicas, levels)
		if err != nil {
			t.Fatal(err)
		}
		data, err := pipedreamplan.Cut(c, []int{all}, levels)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(slowest-p.Seconds) > 1e-9 || same.Seconds > p.Seconds+1e-9 || data.Seconds < p.Seconds-1e-9 {
			t.Errorf("%v: %v takes %v s, %v by its costs, %v as a rival; data parallel %v", widths, replicas, p.Seconds, slowest, same.Seconds, data.Seconds)
		}
	}
}

// TestPublished sets the plan beside every published configuration: none is
// better, and the shapes that are known from the same planner come out.
func TestPublished(t *testing.T) {
	dir := published.Folder(t, "pipedream-profiles")
	paths, _ := filepath.Glob(filepath.Join(dir, "stage_conf", "*", "*", "*.json"))
	if len(paths) == 0 {
		t.Fatalf("no configurations in %s", dir)
	}
	want := map[string]string{"alexnet/gpus=4/hybrid_conf.json": "3-1", "vgg16/gpus=4/hybrid_conf.json": "3-1", "vgg16/gpus=8/hybrid_conf.json": "7-1",
		"vgg16/gpus=16/hybrid_conf.json": "15-1", "gnmt/gpus=4/hybrid_conf.json": "straight"}
	for _, path := range paths {
		name, err := filepath.Rel(filepath.Join(dir, "stage_conf"), path)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		conf, err := pipedream.ReadConf(data, path)
		if err != nil {
			continue // one is no JSON: graph/formats/pipedream tests which
		}
		profile := filepath.Join(dir, filepath.Dir(filepath.Dir(filepath.FromSlash(name)))+".graph.txt")
		if data, err = os.ReadFile(profile); err != nil {
			t.Fatal(err)
		}
		x, err := pipedream.Import(data, profile)
		if err != nil {
			t.Fatal(err)
		}
		c := pipedreamplan.FromProfile(x)
		workers := 0
		for _, m := range conf.Replicas() {
			workers += m
		}
		p, err := pipedreamplan.Solve(c, of(workers))
		if err != nil {
			t.Fatal(err)
		}
		published, err := pipedreamplan.Cut(c, conf.Replicas(), of(workers))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s %.4g ms, ours %s %.4g ms", name, pipedreamplan.Shape(published.Stages), 1e3*published.Seconds, pipedreamplan.Shape(p.Stages), 1e3*p.Seconds)
		if p.Seconds > published.Seconds*(1+1e-12) {
			t.Errorf("%s: %v s, better than the plan's %v s", name, published.Seconds, p.Seconds)
		}
		if w := want[name]; w != "" && (w != pipedreamplan.Shape(p.Stages) || w != pipedreamplan.Shape(published.Stages)) {
			t.Errorf("%s: plan %s, published %s, want %s", name, pipedreamplan.Shape(p.Stages), pipedreamplan.Shape(published.Stages), w)
		}
	}
}
