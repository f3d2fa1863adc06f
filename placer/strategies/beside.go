package strategies

import (
	"context"

	"placer/graph/strategy"
)

// Quick returns the best of what is simulated in moments, nil where nothing can be done: replicas,
// sharded ones, split products, a 1F1B pipeline, and where there are fewer samples than devices
// replicas that share their tokens out, in this order until ctx ends.
func (x *Comparison) Quick(ctx context.Context) *Row {
	return Best(x.quick(ctx))
}

// Beside returns the rows that stand beside a placement of the whole step: those of Quick
// and the best mesh of several axes. Where ctx ends, rows say what was not simulated.
func (x *Comparison) Beside(ctx context.Context) []Row {
	rows := x.quick(ctx)
	if all := x.hybrids(); len(all) > 0 {
		rows = append(rows, x.besideRow(ctx, NameHybrid, all))
	}
	return rows
}

func (x *Comparison) quick(ctx context.Context) (rows []Row) {
	n := x.judge.Machine.NumDevices()
	way := func(mesh strategy.Mesh, sharding strategy.Sharding) strategy.Strategy {
		return strategy.Strategy{Mesh: mesh, Sharding: sharding, Chunks: 1, Bucket: strategy.DefaultBucket}
	}
	data := strategy.Mesh{Data: n, Pipeline: 1, Tensor: 1}
	for _, w := range []struct {
		name string
		s    strategy.Strategy
	}{
		{NameData, way(data, strategy.Replicated)}, {NameZero1, way(data, strategy.ShardOptimizer)}, {NameZero3, way(data, strategy.ShardAll)},
		{NameTensor, way(strategy.Mesh{Data: 1, Pipeline: 1, Tensor: n}, strategy.Replicated)}, {NamePipeline, way(strategy.Mesh{Data: 1, Pipeline: n, Tensor: 1}, strategy.Replicated)},
	} {
		if w.name == NameZero1 && x.ahead != nil { // inference has no optimizer
			continue
		}
		rows = append(rows, x.besideRow(ctx, w.name, x.divided(w.s)))
	}
	if c := x.fewest(n); c > 0 { // fewer samples than devices
		s := way(data, strategy.ShardAll)
		s.Context = c
		rows = append(rows, x.besideRow(ctx, NameContext, x.divided(s)))
	}
	return rows
}

// besideRow is the best of all, and says where time ended before all were simulated.
func (x *Comparison) besideRow(ctx context.Context, name string, all []strategy.Strategy) Row {
	if ctx.Err() != nil {
		return Row{Name: name, Why: "the time ended before it was simulated"}
	}
	row := x.best(ctx, name, all)
	if ctx.Err() != nil && row.Result != nil && len(all) > 1 {
		row.Why = "the time ended before every size of it was simulated"
	}
	return row
}
