// Package arch holds no code: its test states which package may import which.
package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "placer/"
)

// allowed lists, for each package of the module, the module packages it may
// import. Widening a line is a design decision: it needs a note in docs/adr.
var allowed = map[string]string{
	// The graph side: what a step is, what a machine is, how long it takes.
	"units":        "",
	"graph":        "units internal/strictjson",
	"graph/fuse":   "units graph",
	"graph/onnx":   "units graph",
	"graph/train":  "units graph",
	"graph/unit":   "units graph",
	"workloads":    "units graph graph/train",
	"hw":           "units internal/strictjson internal/fsx",
	"plan":         "units graph graph/fuse graph/unit hw internal/strictjson",
	"roofline":     "units graph graph/fuse hw",
	"sim":          "units graph graph/fuse hw plan",
	"sim/trace":    "units graph hw sim",
	"features":     "units graph graph/unit hw",
	"internal/fsx": "", "internal/strictjson": "", "internal/tfevents": "",

	// GPUs.
	"gpu":            "",
	"hw/nvml":        "units hw",
	"measure":        "units graph graph/fuse hw hw/nvml plan roofline sim gpu gpu/kernel",
	"measured":       "units graph hw hw/nvml plan sim gpu measure internal/fsx",
	"hw/bench":       "units graph hw roofline gpu gpu/kernel hw/nvml",
	"gpu/cu":         "gpu",
	"gpu/cuda":       "gpu",
	"gpu/fake":       "gpu gpu/kernel",
	"gpu/gputest":    "gpu gpu/kernel",
	"gpu/ptxtest":    "",
	"gpu/kernel":     "gpu",
	"gpu/policy":     "gpu nn graphsage transformerxl ppo", // docs/adr/0012
	"gpu/kernel/gen": "internal/fsx",

	// The learning side knows no graphs, only matrices.
	"nn":             "nn/blas nn/vec nn/safetensors internal/fsx",
	"nn/blas":        "",
	"nn/vec":         "",
	"nn/safetensors": "internal/fsx",
	"nn/nntest":      "nn nn/blas nn/vec",
	"graphsage":      "nn nn/vec",
	"transformerxl":  "nn nn/vec",
	"ppo":            "nn nn/vec",
	"seq2seq":        "nn nn/vec",
	"gonet":          "nn nn/vec nn/safetensors graphsage transformerxl ppo",

	// Methods.
	"times":                 "units graph hw internal/foreign",
	"graph/dnnpart":         "units graph times internal/foreign",
	"graph/doppler":         "units graph times internal/foreign",
	"graph/pipedream":       "units graph times internal/foreign",
	"graph/piper":           "units graph times internal/foreign",
	"internal/foreign":      "",
	"maxload/maxtest":       "graph hw maxload times",
	"maxload":               "units graph graph/unit hw plan times",
	"baselines/contiguous":  "graph maxload plan baselines/judge",
	"baselines/stages":      "graph/pipedream",
	"baselines/uncontended": "graph hw plan baselines/judge",
	"baselines/balance":     "maxload plan baselines/judge baselines/contiguous",
	"baselines/judge":       "units graph graph/unit hw plan",
	"baselines/single":      "plan baselines/judge",
	"baselines/human":       "graph graph/unit plan baselines/judge",
	"baselines/tfdefault":   "graph hw plan baselines/judge",
	"baselines/roundrobin":  "graph/unit plan baselines/judge",
	"baselines/random":      "graph/unit plan baselines/judge",
	"baselines/network":     "units graph graph/unit plan",
	"baselines/metis":       "graph/unit plan baselines/judge baselines/network",
	"baselines/scotch":      "units graph graph/unit plan baselines/judge baselines/network",
	"baselines/baechi":      "units graph graph/unit plan baselines/judge",
	"baselines/exact":       "graph graph/unit maxload plan sim units baselines/balance baselines/cpsat baselines/heft baselines/judge",
	"baselines/heft":        "units graph graph/unit plan baselines/judge",
	"baselines/anneal":      "units graph graph/fuse graph/unit hw plan sim baselines/judge baselines/fusion baselines/schedule",
	"baselines/fusion":      "graph graph/fuse",
	"baselines/schedule":    "graph plan sim",
	"baselines/local":       "units graph graph/unit hw plan sim baselines/judge",
	"baselines/listsched":   "units graph graph/unit hw plan sim baselines/judge",
	"baselines/reinforce":   "graph graph/unit plan nn nn/vec baselines/judge",
	"baselines/rl2017":      "units graph graph/unit plan nn ppo seq2seq baselines/reinforce",
	"baselines/hdp":         "graph graph/unit plan nn ppo seq2seq baselines/reinforce",
	"baselines/gdp":         "graph/unit plan features nn ppo gonet graphsage baselines/reinforce",
	"baselines/cpsat":       "baselines/judge",
	"baselines/conformance": "units graph graph/unit hw plan sim baselines/judge",

	// REGAL and its rivals.
	"graph/costgraph":          "units graph",
	"baselines/regal/sched":    "",
	"baselines/regal/brkga":    "",
	"baselines/regal/synth":    "baselines/regal/sched baselines/regal/brkga",
	"baselines/regal/exchange": "units graph graph/costgraph baselines/regal/sched",
	"baselines/regal/phase":    "baselines/regal/sched",
	"baselines/regal/gpdfs":    "baselines/regal/sched",
	"baselines/regal/hill":     "baselines/regal/sched",
	"baselines/regal/propose":  "baselines/regal/sched baselines/regal/brkga",
	"baselines/regal/cp":       "baselines/cpsat baselines/regal/sched baselines/regal/phase",
	"baselines/regal/tune":     "baselines/regal/sched baselines/regal/brkga baselines/regal/propose",
	"baselines/regal/columns":  "baselines/regal/sched baselines/regal/brkga",
	"baselines/regal/action":   "nn baselines/regal/brkga",
	"baselines/regal/gas":      "nn baselines/regal/sched baselines/regal/brkga baselines/regal/propose baselines/regal/columns baselines/regal/action",
	"baselines/regal/gnn":      "nn nn/vec nn/safetensors baselines/regal/sched baselines/regal/brkga baselines/regal/propose baselines/regal/columns baselines/regal/action",
	"experiments/regal/tune":   "baselines/regal/sched baselines/regal/synth baselines/regal/tune internal/fsx",
	"experiments/regal/gas":    "nn nn/safetensors internal/fsx baselines/regal/sched baselines/regal/synth baselines/regal/gas",
	"baselines/regal/rivals":   "baselines/cpsat baselines/regal/sched baselines/regal/brkga baselines/regal/propose baselines/regal/gpdfs baselines/regal/hill baselines/regal/phase baselines/regal/cp baselines/regal/tune",

	// The two sides meet here, and nowhere else.
	"placer":            "units graph graph/fuse graph/unit hw plan sim features nn nn/safetensors graphsage transformerxl gonet ppo internal/fsx",
	"problems":          "graph graph/unit hw plan roofline sim workloads",
	"placer/transfer":   "units graph graph/train graph/unit hw plan problems sim workloads baselines/human baselines/listsched nn nn/vec nn/safetensors",
	"placer/pretrained": "placer/transfer",

	// Every method by its name: rivals and the learned policy alike.
	"baselines/catalogue": "*",

	// Output and the command line.
	"dispatch":     "units plan",
	"compare":      "plan internal/fsx",
	"report":       "units graph hw hw/bench hw/nvml measure plan sim maxload compare",
	"internal/cli": "*",
	"cmd/placer":   "internal/cli",

	// Recorded results.
	"experiments/summarise":      "units plan report",
	"experiments/papers":         "compare",
	"experiments/learned-rivals": "compare graph/unit internal/fsx plan problems baselines/gdp baselines/hdp baselines/human baselines/random baselines/reinforce baselines/rl2017",
	"experiments/ablation":       "graph/unit plan placer problems baselines/human",
	"experiments/transfer":       "baselines/human internal/fsx placer/transfer plan",
}

func TestImportPolicy(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(rel))
		may, known := allowed[pkg]
		if !known && !seen[pkg] {
			t.Errorf("package %s has no import policy", pkg)
		}
		seen[pkg] = true
		// Parsing, not "go list": it also reads files behind build tags, and the test
		// cache notices when they change.
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			dep, ours := strings.CutPrefix(imp, module)
			if ours && may != "*" && !slices.Contains(strings.Fields(may), dep) {
				t.Errorf("%s: %s must not import %s", rel, pkg, dep)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("policy names package %s, which does not exist", pkg)
		}
	}
}

// TestOutsideWorld keeps the clock, the exit and the standard streams in
// internal/cli, and randomness that nobody has seeded out of the module.
func TestOutsideWorld(t *testing.T) {
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(rel))
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || pkg == "internal/cli" || pkg == "cmd/placer" || pkg == "gpu/kernel/gen" || strings.HasPrefix(pkg, "experiments/") {
			return nil
		}
		for _, x := range uses(t, file) {
			switch x {
			case "time.Now", "time.Since", "os.Exit", "os.Stdout", "os.Stderr", "fmt.Print", "fmt.Println", "fmt.Printf",
				"rand.Int", "rand.IntN", "rand.Float64", "rand.Float32", "rand.Perm", "rand.Shuffle", "rand.Uint64", "rand.NormFloat64":
				t.Errorf("%s: %s belongs to internal/cli, or is an argument", rel, x)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
