package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"placer/baselines/balance"
	"placer/baselines/contiguous"
	"placer/graph/dnnpart"
	"placer/internal/foreign"
	"placer/maxload"
	"placer/report"
)

// partitioningFlags are the flags of bench dnn-partitioning.
type partitioningFlags struct {
	data string
	free balance.Config
	json bool
}

func (c *console) benchPartitioningCommand() *cobra.Command {
	f := partitioningFlags{free: balance.Default()}
	cmd := &cobra.Command{
		Use:   "dnn-partitioning",
		Short: "Split the published partitioning instances by their largest load",
		Long: "dnn-partitioning reads the throughput instances of Tarnawski et al. (NeurIPS 2020)\n" +
			"under --data, as their repository has them, and prints for each the best cut of a\n" +
			"topological order, PipeDream's cut of biconnected components, the optimal contiguous\n" +
			"split, a split of any shape with its gap to a proven bound, and the experts' splits;\n" +
			"published figures stand beside them where --data has a reference_results.csv.",
		Example: "  placer bench dnn-partitioning --data dnn-partitioning",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.data == "" {
				return usagef("name the folder of the instances by --data")
			}
			doc, err := c.benchPartitioning(cmd.Context(), &f)
			if err != nil {
				return err
			}
			return c.print(f.json, doc)
		},
	}
	cmd.Flags().StringVar(&f.data, "data", "", "folder with throughput-inputs, and perhaps human-experts and reference_results.csv")
	cmd.Flags().IntVar(&f.free.Moves, "moves", f.free.Moves, "moves that the search for splits of any shape proposes")
	cmd.Flags().Uint64Var(&f.free.Seed, "seed", f.free.Seed, "seed of that search")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// benchPartitioning splits every instance under the folder.
func (c *console) benchPartitioning(ctx context.Context, f *partitioningFlags) (*report.Partitioning, error) {
	paths, err := filepath.Glob(filepath.Join(f.data, "throughput-inputs", "*", "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no throughput-inputs/*/*.json", f.data)
	}
	published, err := readPublished(filepath.Join(f.data, "reference_results.csv"))
	if err != nil {
		return nil, err
	}
	doc := &report.Partitioning{Format: report.PartitioningFormat, Moves: f.free.Moves, Seed: f.free.Seed}
	for _, path := range paths {
		name, err := filepath.Rel(f.data, path)
		if err != nil {
			return nil, err
		}
		name = filepath.ToSlash(name)
		row, err := c.benchInstance(ctx, f, path, name, published[name])
		if err != nil {
			return nil, err
		}
		doc.Rows = append(doc.Rows, *row)
		c.progressLine("%s: %.6g ms contiguous, %.6g ms any shape", row.Input, row.Contiguous, row.Free)
	}
	return doc, nil
}

// packingInBench is the effort for an instance's bound: half a minute or so.
const packingInBench = 40_000_000

func (c *console) benchInstance(ctx context.Context, f *partitioningFlags, path, name string, was publishedRow) (*report.PartitioningRow, error) {
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
	s, err := maxload.FromTable(x.Graph, m, x.Times)
	if err != nil {
		return nil, err
	}
	row := &report.PartitioningRow{
		Input: strings.TrimSuffix(strings.TrimPrefix(name, "throughput-inputs/"), ".json"), Nodes: x.Graph.NumOps(),
		Accelerators: x.Times.Models[0].Count, Published: was.optimum, LayersWas: was.pipedream, ExpertWas: was.expert,
	}
	start := c.clock()
	r, err := contiguous.Solve(ctx, s, contiguous.Default())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	row.Seconds = c.clock() - start
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
	y, err := maxload.New(s)
	if err != nil {
		return nil, err
	}
	// Every load below is judged anew from the placement.
	row.Contiguous, row.Linear = 1e3*y.Judge(y.Gather(r.Device)).Seconds, 1e3*y.Judge(y.Gather(linear.Device)).Seconds
	row.Layers = 1e3 * y.Judge(y.Gather(layers.Device)).Seconds
	row.Optimal, row.Downsets = r.Optimal, r.Downsets
	start = c.clock()
	block, _ := balance.Search(ctx, y, y.Gather(r.Device), f.free, nil)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	row.FreeSeconds = c.clock() - start
	free := y.Judge(block)
	bound := y.PackingBound(y.Bound(free.Seconds), free.Seconds, packingInBench)
	row.Free, row.Bound, row.Gap = 1e3*free.Seconds, 1e3*bound, free.Seconds/bound-1
	expert := filepath.Join(f.data, "human-experts", filepath.Base(strings.TrimSuffix(path, ".json"))+"_expert.json")
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
	load := 1e3 * y.Judge(y.Gather(split.Device)).Seconds
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

// progressLine writes a line of progress to stderr.
func (c *console) progressLine(format string, a ...any) {
	if !c.quiet {
		fmt.Fprintf(c.err, "%7.1f s  "+format+"\n", append([]any{c.clock()}, a...)...)
	}
}
