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

// instance measures one instance: splits into contiguous parts, one of any shape, and the
// experts'. Every load is judged anew from the placement, by x.
func (f *Partitioning) instance(ctx context.Context, host Host, path, name string, was publishedRow) (*report.PartitioningRow, error) {
	in, s, err := readInstance(path)
	if err != nil {
		return nil, err
	}
	row := &report.PartitioningRow{
		Input: strings.TrimSuffix(strings.TrimPrefix(name, "throughput-inputs/"), ".json"), Nodes: in.Graph.NumOps(),
		Accelerators: in.Times.Models[0].Count, Published: was.optimum, LayersWas: was.pipedream, ExpertWas: was.expert,
	}
	start := host.Clock()
	best, err := contiguous.Solve(ctx, s, contiguous.Default())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	row.Seconds, row.Optimal, row.Downsets = host.Clock()-start, best.Optimal, best.Downsets
	x, err := throughput.New(ctx, s)
	if err != nil {
		return nil, err
	}
	load := func(device []uint8) float64 { return 1e3 * x.Evaluate(x.Gather(device)).Seconds }
	row.Contiguous = load(best.Device)
	if row.Linear, row.Layers, err = linearLoads(ctx, s, load); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := f.anyShape(ctx, host, x, best.Device, row); err != nil {
		return nil, err
	}
	if strings.Contains(name, "OperatorGraphs") {
		return row, nil // the experts split layer graphs
	}
	expert := filepath.Join(f.Data, "human-experts", filepath.Base(strings.TrimSuffix(path, ".json"))+"_expert.json")
	row.Expert, err = expertLoad(in, expert, load)
	return row, err
}

// readInstance reads the instance at path and what its devices take.
func readInstance(path string) (*dnnpart.Instance, throughput.Source, error) {
	data, err := foreign.ReadFile(path)
	if err != nil {
		return nil, throughput.Source{}, err
	}
	in, err := dnnpart.Import(data, path)
	if err != nil {
		return nil, throughput.Source{}, err
	}
	m, err := in.Times.Machine()
	if err != nil {
		return nil, throughput.Source{}, err
	}
	s, err := throughput.FromTable(in.Graph, m, in.Times)
	return in, s, err
}

// linearLoads returns the loads of the best cuts of one order of the ops, and of one of
// biconnected components, which PipeDream takes for layers.
func linearLoads(ctx context.Context, s throughput.Source, load func([]uint8) float64) (ops, layers float64, err error) {
	linear, err := contiguous.Solve(ctx, s, contiguous.Config{Linear: true})
	if err != nil {
		return 0, 0, err
	}
	chain := s
	chain.Part = contiguous.Layers(s)
	cut, err := contiguous.Solve(ctx, chain, contiguous.Config{Linear: true})
	if err != nil {
		return 0, 0, fmt.Errorf("biconnected components: %w", err)
	}
	return load(linear.Device), load(cut.Device), nil
}

// anyShape fills in the best split of any shape that is found by moves from device, and its
// bound.
func (f *Partitioning) anyShape(ctx context.Context, host Host, x *throughput.Instance, device []uint8, row *report.PartitioningRow) error {
	start := host.Clock()
	block, _ := balance.Search(ctx, x, x.Gather(device), f.Free, nil)
	if err := ctx.Err(); err != nil {
		return err
	}
	row.FreeSeconds = host.Clock() - start
	free := x.Evaluate(block).Seconds
	bound := x.PackingBound(ctx, x.Bound(ctx, free, math.MaxInt), free, packingInBench)
	row.Free, row.Bound, row.Gap = 1e3*free, 1e3*bound, free/bound-1
	return nil
}

// expertLoad returns the load of the experts' split of in, in the file at path or, for a
// training graph, in that of its inference; nil without either.
func expertLoad(in *dnnpart.Instance, path string, load func([]uint8) float64) (*float64, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = os.ReadFile(strings.Replace(path, "training", "inference", 1))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	split, err := in.ReadSplit(data, path)
	if err != nil {
		return nil, err
	}
	ms := load(split.Device)
	return &ms, nil
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
