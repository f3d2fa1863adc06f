package strategies

import "placer/graph/strategy"

// way is a row to be: strategies, of which the best is its answer.
type way struct {
	name string
	all  []strategy.Strategy
}

// ways are those to run a step on the devices of the machine, in the order of rows.
func (x *Comparison) ways() []way {
	n := x.judge.Machine.NumDevices()
	single := strategy.Mesh{Data: 1, Pipeline: 1, Tensor: 1}
	all := []way{{NameSingle, x.pure(single, strategy.Replicated, strategy.OneFOneB)}}
	if n == 1 {
		return all
	}
	data, pipe, tensor := strategy.Mesh{Data: n, Pipeline: 1, Tensor: 1}, strategy.Mesh{Data: 1, Pipeline: n, Tensor: 1}, strategy.Mesh{Data: 1, Pipeline: 1, Tensor: n}
	all = append(all, way{NameData, x.pure(data, strategy.Replicated, strategy.OneFOneB)})
	if x.Trains() { // inference has neither optimizer nor gradients
		all = append(all,
			way{NameZero1, x.pure(data, strategy.ShardOptimizer, strategy.OneFOneB)},
			way{NameZero2, x.pure(data, strategy.ShardGradients, strategy.OneFOneB)})
	}
	all = append(all,
		way{NameZero3, x.pure(data, strategy.ShardAll, strategy.OneFOneB)},
		way{NameGPipe, x.pure(pipe, strategy.Replicated, strategy.GPipe)},
		way{NamePipeline, x.pure(pipe, strategy.Replicated, strategy.OneFOneB)},
		way{NameInterleaved, x.pure(pipe, strategy.Replicated, strategy.Interleaved)},
		way{NameTensor, x.pure(tensor, strategy.Replicated, strategy.OneFOneB)})
	if tokens := x.sharedTokens(data); len(tokens) > 0 {
		all = append(all, way{NameContext, tokens})
	}
	if experts := x.sharedExperts(data); len(experts) > 0 {
		all = append(all, way{NameExperts, experts})
	}
	return append(all, way{NameHybrid, x.hybrids()})
}

// severalChunks are the stages that a rank of an interleaved pipeline has.
var severalChunks = []int{2, 4}

// pure are the strategies of one mesh, sharding and schedule.
func (x *Comparison) pure(mesh strategy.Mesh, sharding strategy.Sharding, schedule strategy.Schedule) (all []strategy.Strategy) {
	chunks := []int{1}
	if schedule == strategy.Interleaved {
		chunks = severalChunks
	}
	for _, v := range chunks {
		all = append(all, x.divided(strategy.Strategy{Mesh: mesh, Sharding: sharding, Schedule: schedule, Chunks: v, Bucket: strategy.DefaultBucket})...)
	}
	return all
}

// next returns the number of micro-batches behind m that a share is divided into: the next power
// of two, and behind those the share itself.
func next(m, share int64) int64 {
	if m < share && 2*m > share {
		return share
	}
	return 2 * m
}

// divided returns s with every number of micro-batches that is worth a try.
func (x *Comparison) divided(s strategy.Strategy) (all []strategy.Strategy) {
	replicas := int64(s.Data / max(1, s.Context)) // with samples of their own
	share := x.c.Batch / replicas
	if x.c.Batch%replicas != 0 {
		share = 0
	}
	for m := int64(1); m <= share; m = next(m, share) {
		if share%m != 0 || x.c.MicroBatches > 0 && int64(x.c.MicroBatches) != m {
			continue
		}
		if s.Pipeline > 1 && m < int64(s.Pipeline) && share%(2*m) == 0 && x.c.MicroBatches == 0 {
			continue // a pipeline is filled where it can be
		}
		s.MicroBatches = int(m)
		if s.Validate() == nil {
			all = append(all, s)
		}
	}
	if len(all) == 0 && share > 0 && x.c.MicroBatches > 0 && share%int64(x.c.MicroBatches) == 0 {
		s.MicroBatches = x.c.MicroBatches
		if s.Validate() == nil {
			all = append(all, s)
		}
	}
	return all
}

// experts returns what the numbers of experts that replicas can share out have in common, 0 where
// there are none.
func (x *Comparison) experts() int {
	m, _, _, err := x.models.of(x.judge, variant{x.c.Batch, strategy.RecomputeNothing, 0})
	if err != nil {
		return 0
	}
	return int(strategy.FindMixtures(m).Experts)
}

// Mixture reports whether the model has experts that replicas could share out.
func (x *Comparison) Mixture() bool { return x.experts() > 1 }

// sharedExperts are the ways in which the replicas of a mesh share experts out: among all of
// them, or else among as many as divide both, and where these are on several hosts among those of one,
// who send rows over its own links.
func (x *Comparison) sharedExperts(mesh strategy.Mesh) (all []strategy.Strategy) {
	experts := x.experts()
	n := divisor(mesh.Data, experts)
	if experts == 0 || n < 2 {
		return nil
	}
	shardings := x.shardings(mesh.Data)
	if mesh.Data == mesh.Ranks() && x.ahead == nil {
		shardings = append(shardings, strategy.ShardAll)
	}
	among := []int{n}
	if f, ok := x.judge.fabricOf(mesh, strategy.Collective{Axis: strategy.ExpertAxis, Ranks: n}); ok && f.hosts > 1 {
		if near := divisor(n, f.local()); near > 1 {
			among = append(among, near)
		}
	}
	for _, sharding := range shardings {
		for _, n := range among {
			all = append(all, x.divided(strategy.Strategy{Mesh: mesh, Sharding: sharding, Experts: n, Schedule: strategy.OneFOneB, Chunks: 1, Bucket: strategy.DefaultBucket})...)
		}
	}
	return all
}

// sharedTokens are the ways in which all replicas of a mesh of nothing else share the tokens of samples
// out among themselves: as few neighbours as it takes for all to have samples, and two and four times as
// many.
func (x *Comparison) sharedTokens(mesh strategy.Mesh) (all []strategy.Strategy) {
	if !x.Trains() {
		return nil
	}
	for c, n := max(2, x.fewest(mesh.Data)), 0; c <= mesh.Data && n < 3; c, n = 2*c, n+1 {
		if mesh.Data%c != 0 || !x.sharesTokens(c) {
			continue
		}
		for _, sharding := range []strategy.Sharding{strategy.ShardOptimizer, strategy.ShardAll} {
			all = append(all, x.divided(strategy.Strategy{Mesh: mesh, Sharding: sharding, Context: c, Schedule: strategy.OneFOneB, Chunks: 1, Bucket: strategy.DefaultBucket})...)
		}
	}
	return all
}

// sharesTokens reports whether so many replicas can share the model's tokens out.
func (x *Comparison) sharesTokens(ranks int) bool {
	_, err := x.models.graph(variant{x.c.Batch, strategy.RecomputeNothing, ranks})
	return err == nil
}

// fewest returns by how few of so many replicas tokens have to be shared out for all to have samples,
// 0 where they need not be or cannot.
func (x *Comparison) fewest(replicas int) int {
	if !x.Trains() || x.c.Batch%int64(replicas) == 0 {
		return 0
	}
	for c := 2; c <= replicas; c++ {
		if replicas%c == 0 && x.c.Batch%int64(replicas/c) == 0 && x.sharesTokens(c) {
			return c
		}
	}
	return 0
}

// divisor returns the greatest common divisor of a and b.
func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// shardings are those that are tried in meshes with so many replicas.
func (x *Comparison) shardings(replicas int) []strategy.Sharding {
	if replicas == 1 || x.ahead != nil {
		return []strategy.Sharding{strategy.Replicated}
	}
	return []strategy.Sharding{strategy.Replicated, strategy.ShardOptimizer}
}

// hybrids are the meshes that divide more than one axis.
func (x *Comparison) hybrids() (all []strategy.Strategy) {
	n := x.judge.Machine.NumDevices()
	for d := 1; d <= n; d++ {
		for p := 1; d*p <= n; p++ {
			t := n / (d * p)
			if d*p*t != n || severalAxes(d, p, t) < 2 {
				continue
			}
			mesh := strategy.Mesh{Data: d, Pipeline: p, Tensor: t}
			for _, sharding := range x.shardings(d) {
				s := strategy.Strategy{Mesh: mesh, Sharding: sharding, Context: x.fewest(d), Schedule: strategy.OneFOneB, Chunks: 1, Bucket: strategy.DefaultBucket}
				all = append(all, x.divided(s)...)
			}
			if d > 1 {
				all = append(all, x.sharedExperts(mesh)...)
			}
		}
	}
	return all
}

// isPrime reports whether n devices, 1 too, form no mesh of two axes.
func isPrime(n int) bool {
	for d := 2; d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}

// severalAxes counts the axes that are divided.
func severalAxes(sizes ...int) (n int) {
	for _, s := range sizes {
		if s > 1 {
			n++
		}
	}
	return n
}
