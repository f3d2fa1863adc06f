// Command torchops joins the ops of captured PyTorch models with the time that each took on a
// GPU, for the fits of package roofline: one row for equal ops, with their median time.
//
//	torchops MODELS TIMES.json >torch_ops.csv
//
// MODELS has the folders of capture_torch_models.py, TIMES.json is what torch_models.py measured.
// Products, ops that launch nothing and ops that repeat are left out.
package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"placer/graph"
	"placer/graph/formats"
	"placer/graph/formats/onnx"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: torchops MODELS TIMES.json >torch_ops.csv")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "torchops:", err)
		os.Exit(1)
	}
}

// op is what equal ops have in common.
type op struct {
	kind  graph.Kind
	dtype graph.DType
	bytes int64
	flops float64
}

func run(models, timesFile string, out io.Writer) error {
	text, err := os.ReadFile(timesFile)
	if err != nil {
		return err
	}
	var times map[string][]float64
	if err := json.Unmarshal(text, &times); err != nil {
		return fmt.Errorf("%s: %w", timesFile, err)
	}
	w := csv.NewWriter(out)
	w.Write([]string{"model", "kind", "type", "bytes", "flops", "count", "us"})
	for _, model := range slices.Sorted(maps.Keys(times)) {
		path := filepath.Join(models, model, "graph.json")
		f, err := formats.ReadFile(path, onnx.Config{})
		if err != nil {
			return err
		}
		g, seconds := f.Graph, times[model]
		if len(seconds) != g.NumOps() {
			return fmt.Errorf("%s has %d ops, %s %d times", path, g.NumOps(), timesFile, len(seconds))
		}
		var order []op
		took := map[op][]float64{}
		for i := range g.NumOps() {
			o := g.Op(graph.OpID(i))
			facts, _ := graph.FactsOf(o.Kind)
			repeats, kernels := o.Iterations()
			if !facts.Class.Launches() || facts.InPlace || !o.GEMM.IsZero() || repeats*kernels != 1 || !(seconds[i] > 0) {
				continue
			}
			k := op{o.Kind, o.DType, int64(o.Bytes), float64(o.FLOPs)}
			if took[k] == nil {
				order = append(order, k)
			}
			took[k] = append(took[k], seconds[i])
		}
		for _, k := range order {
			s := took[k]
			slices.Sort(s)
			w.Write([]string{model, string(k.kind), k.dtype.String(), strconv.FormatInt(k.bytes, 10), strconv.FormatFloat(k.flops, 'g', -1, 64),
				strconv.Itoa(len(s)), strconv.FormatFloat(1e6*s[len(s)/2], 'f', 3, 64)})
		}
	}
	w.Flush()
	return w.Error()
}
