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

// anywhere may be imported by every package: packages that know the standard library
// alone and no term of the field.
var anywhere = []string{"internal/faults", "internal/jsonx", "internal/words"}

// allowed lists, for each package of the module, the module packages it may
// import. Widening a line is a design decision: it needs a note in docs/adr.
var allowed = map[string]string{
	// The graph side: what a step is, what a machine is, how long it takes.
	"units":                  "",
	"graph":                  "units",
	"graph/fuse":             "units graph internal/unionfind",
	"graph/formats":          "units graph graph/formats/costgraph graph/formats/dnnpart graph/formats/doppler graph/formats/foreign graph/formats/onnx graph/formats/pipedream graph/formats/piper graph/formats/times internal/fsx graph/formats/decoder graph/formats/hlo graph/formats/tensorflow graph/formats/torchtrace",
	"graph/formats/onnx":     "units graph graph/einsum",
	"graph/einsum":           "units graph",
	"graph/train":            "units graph",
	"graph/remat":            "graph graph/fuse",                        // docs/adr/0029
	"graph/merge":            "units graph",                             // docs/adr/0078
	"graph/strategy":         "units graph graph/unit internal/digraph", // docs/adr/0036
	"graph/unit":             "units graph internal/unionfind",
	"workloads":              "units graph graph/strategy graph/train internal/spell",
	"hw":                     "units internal/fsx",
	"plan":                   "units graph graph/fuse graph/remat graph/unit hw internal/fsx",
	"plan/formats":           "graph graph/formats/tensorflow hw plan internal/fsx",
	"roofline":               "units graph graph/fuse hw",
	"sim":                    "units graph graph/fuse hw plan internal/parallel internal/unionfind",
	"sim/robust":             "units graph graph/fuse hw plan sim internal/parallel", // docs/adr/0037
	"sim/trace":              "units graph hw sim",
	"sim/schedule":           "units graph hw plan sim",
	"placer/policy/features": "units graph graph/unit hw schedule", // docs/adr/0080
	"internal/unionfind":     "", "internal/digraph": "", "internal/parallel": "", "internal/spell": "",
	"internal/dynlib": "", "internal/faults": "", "internal/jsonx": "", "internal/words": "", "internal/fsx": "", "internal/tfevents": "", "internal/published": "", "internal/doctest": "", "internal/browser": "",

	// GPUs.
	"hw/gpu":                    "",
	"hw/nvml":                   "units hw internal/dynlib",
	"measure":                   "units graph graph/fuse hw hw/nvml plan roofline sim hw/gpu hw/gpu/kernel",
	"measure/session":           "units graph hw hw/nvml plan sim hw/gpu measure internal/fsx internal/parallel",
	"measure/python":            "units graph hw plan sim sim/schedule",
	"measure/python/pythontest": "measure/python",
	"hw/bench":                  "units graph hw roofline hw/gpu hw/gpu/kernel hw/nvml",
	"hw/gpu/cu":                 "hw/gpu",
	"hw/gpu/cuda/cudatest":      "hw/gpu hw/gpu/cuda",
	"hw/gpu/cuda":               "hw/gpu internal/dynlib",
	"hw/gpu/fake":               "hw/gpu hw/gpu/kernel",
	"hw/gpu/gputest":            "hw/gpu hw/gpu/kernel",
	"hw/gpu/ptxtest":            "",
	"hw/gpu/kernel":             "hw/gpu",
	"nn/device":                 "hw/gpu nn graphsage transformerxl ppo", // docs/adr/0012
	"hw/gpu/kernel/gen":         "internal/fsx",

	// The learning side knows no graphs, only matrices.
	"nn":             "nn/blas nn/vec nn/safetensors internal/fsx",
	"nn/blas":        "",
	"nn/vec":         "",
	"nn/safetensors": "internal/fsx",
	"nn/nntest":      "nn nn/blas nn/vec",
	"graphsage":      "nn nn/vec",
	"transformerxl":  "nn nn/vec",
	"ppo":            "nn nn/vec",
	"nn/seq2seq":     "nn nn/vec",
	"nn/gonet":       "nn nn/vec nn/safetensors graphsage transformerxl ppo",

	// Methods.
	"baselines":                         "",
	"graph/formats/times":               "units graph hw graph/formats/foreign",
	"graph/formats/dnnpart":             "units graph graph/formats/times graph/formats/foreign",
	"graph/formats/doppler":             "units graph graph/formats/times graph/formats/foreign",
	"graph/formats/pipedream":           "units graph graph/formats/times graph/formats/foreign",
	"graph/formats/piper":               "units graph graph/formats/times graph/formats/foreign",
	"graph/formats/formatstest":         "",
	"graph/formats/foreign":             "internal/fsx",
	"sim/throughput/throughputtest":     "graph hw sim/throughput graph/formats/times",
	"sim/throughput":                    "units graph graph/fuse graph/unit hw plan graph/formats/times internal/unionfind",
	"baselines/partition":               "baselines/budget graph graph/unit plan schedule units",
	"baselines/partition/pipedreamplan": "graph/formats/pipedream",
	"baselines/partition/stages":        "baselines/budget graph plan plan/formats",
	"baselines/budget":                  "plan",
	"baselines/rules":                   "baselines/budget graph graph/unit hw plan",
	"baselines/partition/contiguous":    "graph sim/throughput plan baselines/budget internal/digraph internal/unionfind",
	"baselines/search/uncontended":      "graph hw plan baselines/budget",
	"baselines/partition/balance":       "sim/throughput plan baselines/partition/contiguous baselines/budget",
	"baselines/exact":                   "graph graph/unit sim/throughput plan sim units baselines/partition/balance baselines/exact/cpsat baselines/budget baselines/listsched",
	"baselines/search/anneal":           "units graph graph/fuse graph/unit hw plan sim baselines/search/fusion schedule baselines/budget internal/parallel",
	"baselines/search/fusion":           "graph graph/fuse plan",
	"baselines/search/fold":             "graph graph/unit plan schedule baselines/budget baselines/search/anneal baselines/search/fusion", // docs/adr/0039
	"schedule":                          "units graph graph/unit hw plan sim",
	"baselines/search/local":            "graph graph/unit plan baselines/budget",
	"baselines/search/exchange":         "graph graph/fuse graph/unit plan schedule sim baselines/budget",
	"baselines/listsched":               "units graph graph/unit plan schedule baselines/budget",
	"baselines/learned/reinforce":       "graph graph/unit plan nn nn/vec baselines/budget ppo",
	"baselines/learned/rl2017":          "units graph graph/unit plan nn ppo nn/seq2seq baselines/learned/reinforce schedule internal/unionfind",
	"baselines/learned/hdp":             "graph graph/unit plan nn ppo nn/seq2seq baselines/learned/reinforce",
	"baselines/learned/gdp":             "graph/unit plan placer/policy/features nn ppo nn/gonet graphsage baselines/learned/reinforce",
	"baselines/exact/cpsat":             "baselines/budget",
	"baselines/conformance":             "units graph graph/unit hw plan sim baselines/budget",

	// REGAL and its rivals.
	"graph/formats/costgraph":  "units graph",
	"graph/formats/tensorflow": "units graph graph/einsum graph/formats/foreign internal/unionfind",
	"graph/formats/onnxcut":    "graph/formats/foreign",
	"graph/formats/torchtrace": "units graph graph/formats/foreign",
	"graph/formats/decoder":    "units graph graph/formats/foreign workloads",
	"graph/formats/hlo":        "units graph graph/formats/foreign",
	"baselines/regal/sched":    "graph units",
	"baselines/regal/brkga":    "",
	"baselines/regal/synth":    "baselines/regal/sched baselines/regal/brkga",
	"baselines/regal/phase":    "baselines/regal/sched",
	"baselines/regal/propose":  "baselines/regal/sched baselines/regal/brkga nn",
	"baselines/regal/gas":      "nn baselines/regal/sched baselines/regal/brkga baselines/regal/propose",
	"baselines/regal/gnn":      "nn nn/vec nn/safetensors baselines/regal/sched baselines/regal/brkga baselines/regal/propose internal/fsx internal/parallel",
	"experiments/regal/tune":   "baselines/regal/sched baselines/regal/synth internal/fsx baselines/regal/propose",
	"experiments/regal/gas":    "nn nn/safetensors internal/fsx baselines/regal/sched baselines/regal/synth baselines/regal/gas",
	"baselines/regal/genetic":  "units graph graph/unit plan nn baselines/budget baselines/regal/brkga baselines/regal/gnn baselines/regal/propose baselines/regal/sched",
	"baselines/regal/rivals":   "baselines/exact/cpsat baselines/regal/sched baselines/regal/brkga baselines/regal/propose baselines/regal/phase internal/parallel",

	// The two sides meet here, and nowhere else.
	"placer/portfolio":           "graph/unit plan baselines/budget internal/parallel", // docs/adr/0033
	"placer/search":              "units graph hw plan internal/fsx placer/problem internal/parallel",
	"placer/policy/rollout":      "units graph graph/fuse graph/unit plan sim baselines/budget internal/parallel",
	"placer/policy/curriculum":   "graph graph/unit plan placer/policy/features placer/policy/rollout internal/unionfind schedule", // docs/adr/0080
	"placer/policy/goone":        "graph/unit plan placer/policy/features placer/policy/rollout placer/policy/curriculum nn graphsage transformerxl nn/gonet ppo internal/fsx",
	"placer/policy/cem":          "graph/unit plan placer/policy/rollout placer/policy/curriculum nn",
	"placer/policy/fusion":       "nn graph graph/fuse graph/unit plan placer/policy/rollout placer/policy/cem internal/unionfind",
	"placer/policy/joint":        "plan baselines/budget placer/policy/rollout placer/policy/cem placer/policy/fusion nn/safetensors internal/fsx",
	"placer":                     "hw plan sim graph/formats graph/formats/onnx placer/problem placer/search placer/methods",
	"placer/fit":                 "units graph graph/remat hw plan placer/problem baselines/listsched baselines/rules",
	"placer/problem":             "units graph graph/unit graph/formats/times hw plan roofline sim sim/robust sim/throughput workloads internal/parallel",
	"placer/corpus/families":     "units graph graph/train workloads",                                                                                                                                                                                                                              // docs/adr/0038
	"placer/corpus":              "units graph graph/unit hw plan placer/problem placer/search placer/corpus/families baselines/rules internal/fsx internal/parallel",                                                                                                                              // docs/adr/0038
	"placer/policy/sequential":   "units graph graph/unit hw plan placer/problem placer/corpus placer/corpus/families sim schedule baselines/budget baselines/rules baselines/search/anneal baselines/search/fusion graph/fuse nn nn/vec nn/safetensors graphsage transformerxl internal/parallel", // docs/adr/0042
	"placer/policy/proposer":     "plan placer/corpus placer/corpus/families baselines/search/anneal nn nn/vec nn/safetensors internal/parallel",                                                                                                                                                   // docs/adr/0046
	"placer/pretrained":          "internal/fsx placer/policy/sequential placer/policy/proposer plan",
	"placer/verdict":             "units graph graph/unit hw plan sim baselines/budget baselines/search/fusion placer/problem placer/methods placer/search",
	"placer/replan":              "units graph graph/unit hw plan placer/methods placer/pretrained placer/problem placer/search baselines/listsched baselines/search/anneal", // docs/adr/0037
	"placer/strategies/launch":   "graph graph/strategy",
	"placer/strategies/torch":    "graph graph/strategy internal/jsonx",                                                                                                                                                // docs/adr/0081
	"placer/strategies":          "units graph graph/fuse graph/remat graph/strategy graph/unit hw plan roofline sim placer/problem baselines/budget baselines/search/fusion baselines/search/local internal/parallel", // docs/adr/0036
	"placer/serving":             "graph graph/strategy hw units placer/problem placer/strategies internal/parallel",                                                                                                   // docs/adr/0102
	"placer/explain":             "units graph hw plan sim placer/problem baselines/search/anneal internal/unionfind",
	"placer/check":               "units graph hw plan sim placer/problem placer/explain internal/unionfind",
	"baselines/regal/regaltest":  "nn baselines/regal/sched baselines/regal/brkga baselines/regal/synth baselines/regal/propose",
	"placer/problem/problemtest": "placer/problem plan",

	// Every method by its name: rivals and the learned policy alike.
	"placer/methods": "*",

	// Output and the command line.
	"internal/dispatch":            "units plan",
	"internal/compare":             "plan internal/fsx internal/parallel",
	"internal/campaign":            "units graph hw workloads plan sim placer/methods placer/problem placer/search internal/fsx internal/jsonx",
	"internal/campaign/strategies": "units graph graph/formats/decoder graph/strategy hw workloads plan placer/problem placer/strategies",
	"internal/report":              "units graph hw hw/bench hw/nvml measure measure/python plan roofline sim sim/throughput internal/compare placer/verdict placer/explain placer/check placer/strategies placer/serving", // docs/adr/0031
	"internal/report/web":          "units graph hw hw/bench hw/gpu plan sim internal/compare internal/report internal/tfevents",
	"internal/cli":                 "*",

	// Experiments.
	"internal/bench":       "*",
	"internal/bench/regal": "units graph nn nn/safetensors baselines/exact/cpsat baselines/regal/gas baselines/regal/gnn baselines/regal/propose baselines/regal/rivals baselines/regal/sched baselines/regal/synth internal/bench internal/compare internal/fsx internal/report internal/tfevents",

	"cmd/placer": "internal/cli",

	// Recorded results.
	"experiments/summarise":            "units plan internal/report",
	"experiments/verdict":              "units internal/report",
	"experiments/papers":               "internal/compare",
	"experiments/published":            "internal/cli",
	"experiments/serving":              "internal/cli",
	"experiments/hardware/torchops":    "graph graph/formats graph/formats/onnx",
	"experiments/replan":               "graph hw placer/methods placer/problem placer/replan placer/search plan units workloads",
	"experiments/strategies/openbatch": "internal/published",
	"experiments/strategies/table":     "placer/strategies units",
	"experiments/pictures":             "units graph plan sim internal/browser internal/cli internal/fsx placer/problem baselines/rules",
	"experiments/learned-rivals":       "internal/compare graph/unit internal/fsx plan placer/problem baselines/learned/gdp baselines/learned/hdp baselines/learned/reinforce baselines/learned/rl2017 baselines/rules",
	"experiments/ablation":             "graph/unit plan placer/policy/goone placer/problem baselines/rules",
	"experiments/guided":               "hw internal/fsx workloads placer/policy/proposer placer/problem plan baselines/rules baselines/search/anneal placer/corpus placer/corpus/families placer/methods",
	"experiments/transfer":             "internal/fsx hw workloads graph/fuse placer/methods placer/policy/sequential placer/pretrained placer/problem plan baselines/rules baselines/search/anneal baselines/search/fusion",
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
			if ours && may != "*" && !slices.Contains(anywhere, dep) && !slices.Contains(strings.Fields(may), dep) {
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
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || pkg == "internal/cli" || pkg == "cmd/placer" || pkg == "hw/gpu/kernel/gen" || strings.HasPrefix(pkg, "experiments/") {
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
