package bench

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"placer/baselines/partition/balance"
	"placer/baselines/partition/contiguous"
	"placer/graph/formats/dnnpart"
	"placer/graph/formats/foreign"
	"placer/internal/report"
	"placer/sim/throughput"
)

// Partitioning repeats the throughput experiments of Tarnawski et al. (NeurIPS
// 2020).
type Partitioning struct {
	// Data is a folder with throughput-inputs, as the authors' repository has it, and
	// perhaps human-experts and reference_results.csv.
	Data string
	Free balance.Config // search for splits of any shape
}

// Run splits every instance under the folder.
func (f *Partitioning) Run(ctx context.Context, host Host) (*report.Partitioning, error) {
	if f.Data == "" {
		return nil, ConfigErrorf("name the folder of the instances by --data")
	}
	paths, err := filepath.Glob(filepath.Join(f.Data, "throughput-inputs", "*", "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no throughput-inputs/*/*.json", f.Data)
	}
	published, err := readPublished(filepath.Join(f.Data, "reference_results.csv"))
	if err != nil {
		return nil, err
	}
	doc := &report.Partitioning{Format: report.PartitioningFormat, Moves: f.Free.Moves, Seed: f.Free.Seed}
	for _, path := range paths {
		name, err := filepath.Rel(f.Data, path)
		if err != nil {
			return nil, err
		}
		name = filepath.ToSlash(name)
		row, err := f.instance(ctx, host, path, name, published[name])
		if err != nil {
			return nil, err
		}
		doc.Rows = append(doc.Rows, *row)
		host.Log("%s: %.6g ms contiguous, %.6g ms any shape", row.Input, row.Contiguous, row.Free)
	}
	return doc, nil
}

// packingInBench is the effort for an instance's bound: half a minute or so.
const packingInBench = 40_000_000

func (f *Partitioning) instance(ctx context.Context, host Host, path, name string, was publishedRow) (*report.PartitioningRow, error) {
	data, err := foreign.ReadFile(path)
	if err != nil {
		return nil, err
	}
	x, err := dnnpart.Import(data, path)
	if err != nil {
		return nil, err
	}
	m, err := x.Times.Machine()
	if err != nil {
		return nil, err
	}
	s, err := throughput.FromTable(x.Graph, m, x.Times)
	if err != nil {
		return nil, err
	}
	row := &report.PartitioningRow{
		Input: strings.TrimSuffix(strings.TrimPrefix(name, "throughput-inputs/"), ".json"), Nodes: x.Graph.NumOps(),
		Accelerators: x.Times.Models[0].Count, Published: was.optimum, LayersWas: was.pipedream, ExpertWas: was.expert,
	}
	start := host.Clock()
	r, err := contiguous.Solve(ctx, s, contiguous.Default())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	row.Seconds = host.Clock() - start
	linear, err := contiguous.Solve(ctx, s, contiguous.Config{Linear: true})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	chain := s
	chain.Part = contiguous.Layers(s)
	layers, err := contiguous.Solve(ctx, chain, contiguous.Config{Linear: true})
	if err != nil {
		return nil, fmt.Errorf("%s: biconnected components: %w", path, err)
	}
	y, err := throughput.New(ctx, s)
	if err != nil {
		return nil, err
	}
	// Every load below is judged anew from the placement.
	row.Contiguous, row.Linear = 1e3*y.Evaluate(y.Gather(r.Device)).Seconds, 1e3*y.Evaluate(y.Gather(linear.Device)).Seconds
	row.Layers = 1e3 * y.Evaluate(y.Gather(layers.Device)).Seconds
	row.Optimal, row.Downsets = r.Optimal, r.Downsets
	start = host.Clock()
	block, _ := balance.Search(ctx, y, y.Gather(r.Device), f.Free, nil)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	row.FreeSeconds = host.Clock() - start
	free := y.Evaluate(block)
	bound := y.PackingBound(ctx, y.Bound(ctx, free.Seconds, math.MaxInt), free.Seconds, packingInBench)
	row.Free, row.Bound, row.Gap = 1e3*free.Seconds, 1e3*bound, free.Seconds/bound-1
	expert := filepath.Join(f.Data, "human-experts", filepath.Base(strings.TrimSuffix(path, ".json"))+"_expert.json")
	if strings.Contains(name, "OperatorGraphs") {
		return row, nil // the experts split layer graphs
	}
	if data, err = os.ReadFile(expert); errors.Is(err, fs.ErrNotExist) {
		if data, err = os.ReadFile(strings.Replace(expert, "training", "inference", 1)); errors.Is(err, fs.ErrNotExist) {
			return row, nil
		}
	}
	if err != nil {
		return nil, err
	}
	split, err := x.ReadSplit(data, expert)
	if err != nil {
		return nil, err
	}
	load := 1e3 * y.Evaluate(y.Gather(split.Device)).Seconds
	row.Expert = &load
	return row, nil
}

// publishedRow is what the reference solvers and experts came to, in
// milliseconds.
type publishedRow struct{ optimum, pipedream, expert *float64 }

// readPublished reads the published figures by the instances' paths; a file that
// does not exist has none.
func readPublished(path string) (map[string]publishedRow, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	column := map[string]int{}
	for k, name := range rows[0] {
		column[name] = k + 1
	}
	cell := func(row []string, name string) *float64 {
		if k := column[name]; k > 0 {
			if x, err := strconv.ParseFloat(row[k-1], 64); err == nil {
				return &x
			}
		}
		return nil
	}
	out := map[string]publishedRow{}
	for _, row := range rows[1:] {
		out[row[0]] = publishedRow{cell(row, "optimal_contiguous_maxload_dp"), cell(row, "pipedream_maxload"), cell(row, "human_expert(maxload_or_latency)")}
	}
	return out, nil
}
