package strategy

import (
	"errors"
	"fmt"

	"placer/internal/faults"
	"placer/units"
)

// Mesh arranges ranks: Data replicas, each of Pipeline stages, each of Tensor ranks that
// share the stage's products.
type Mesh struct{ Data, Pipeline, Tensor int }

// Ranks returns the number of ranks.
func (m Mesh) Ranks() int { return m.Data * m.Pipeline * m.Tensor }

// Rank returns the rank of replica d, stage s and part t. Ranks of one tensor group are
// neighbours, then those of one data group, as Megatron-LM orders them.
func (m Mesh) Rank(d, s, t int) int { return (s*m.Data+d)*m.Tensor + t }

func (m Mesh) String() string {
	return fmt.Sprintf("dp%d x pp%d x tp%d", m.Data, m.Pipeline, m.Tensor)
}

// Sharding says what the replicas of data parallelism share out among themselves.
type Sharding uint8

// Shardings. DeepSpeed calls them ZeRO stages 0 to 3.
const (
	Replicated     Sharding = iota // nothing: gradients are all-reduced (PyTorch DDP)
	ShardOptimizer                 // optimizer state: ZeRO 1, ZeroRedundancyOptimizer
	ShardGradients                 // and gradients: ZeRO 2
	ShardAll                       // and parameters: ZeRO 3, FSDP's FULL_SHARD
	numShardings
)

var shardingNames = [numShardings]string{"ddp", "zero-1", "zero-2", "zero-3"}

func (s Sharding) String() string {
	if s < numShardings {
		return shardingNames[s]
	}
	return fmt.Sprintf("Sharding(%d)", uint8(s))
}

// Recompute says which activations are computed again before their gradients.
type Recompute uint8

// What is computed again.
const (
	RecomputeNothing   Recompute = iota
	RecomputeSelective           // the cores of attention: scores and what becomes of them (Korthikanti et al., arXiv:2205.05198)
	RecomputeLayers              // every layer (Chen et al., arXiv:1604.06174)
	numRecomputes
)

var recomputeNames = [numRecomputes]string{"nothing", "selective", "layers"}

func (r Recompute) String() string {
	if r < numRecomputes {
		return recomputeNames[r]
	}
	return fmt.Sprintf("Recompute(%d)", uint8(r))
}

// Strategy says how a mesh of ranks runs one step.
type Strategy struct {
	Mesh
	Sharding Sharding
	// MicroBatches is M: every replica runs its share of the batch in M parts.
	MicroBatches int
	Schedule     Schedule
	// Chunks is V, the parts of the model that each stage holds, for Interleaved and Free;
	// else 1.
	Chunks int
	// Sequence splits by rows what split products leave whole between their blocks: sequence
	// parallelism (Korthikanti et al., arXiv:2205.05198). Vocabulary splits output layers by
	// their columns and the table of embeddings by rows (Shoeybi et al., arXiv:1909.08053). Both
	// go with Tensor > 1.
	Sequence, Vocabulary bool
	// Experts is the number of neighbouring replicas that share experts out among themselves, a divisor
	// of Data: expert parallelism (see Mixtures); 0: every replica has all experts.
	Experts int
	// Context is the number of neighbouring replicas that share the tokens of the same samples out among
	// themselves, a divisor of Data: context parallelism (see ShareTokens); 0: every replica has samples of
	// its own.
	Context int
	// Recompute says which activations are computed again before their gradients (package
	// remat): the graphs of the Model are then those of such steps.
	Recompute Recompute
	// Bucket is the size from which on gradients that wait are reduced.
	Bucket units.Bytes
}

// Parts is the number of parts that the samples of a step are divided into: micro-batches of replicas
// that have samples of their own.
func (s Strategy) Parts() int { return s.Data / max(1, s.Context) * s.MicroBatches }

// DefaultBucket is PyTorch's bucket_cap_mb.
const DefaultBucket = 25 * units.Bytes(1<<20)

// Single is the step on one device in m micro-batches.
func Single(m int) Strategy {
	return Strategy{Mesh: Mesh{1, 1, 1}, MicroBatches: m, Chunks: 1, Bucket: DefaultBucket}
}

// String is the strategy in one line: what differs from one device and one batch.
func (s Strategy) String() string {
	text := ""
	add := func(format string, a ...any) {
		if text != "" {
			text += " "
		}
		text += fmt.Sprintf(format, a...)
	}
	if s.Data > 1 {
		add("%v=%d", s.Sharding, s.Data)
	}
	switch {
	case s.Experts > 0 && s.Experts == s.Data:
		add("ep")
	case s.Experts > 0:
		add("ep=%d", s.Experts)
	}
	switch {
	case s.Context > 0 && s.Context == s.Data:
		add("cp")
	case s.Context > 0:
		add("cp=%d", s.Context)
	}
	if s.Pipeline > 1 {
		add("%v=%d", s.Schedule, s.Pipeline)
		if s.Chunks > 1 {
			add("chunks=%d", s.Chunks)
		}
	}
	if s.Tensor > 1 {
		add("tp=%d", s.Tensor)
	}
	if s.Vocabulary {
		add("vocab")
	}
	if s.Sequence {
		add("sp")
	}
	if s.MicroBatches > 1 {
		add("mb=%d", s.MicroBatches)
	}
	switch s.Recompute {
	case RecomputeSelective:
		add("recompute=selective")
	case RecomputeLayers:
		add("recompute")
	}
	if text == "" {
		text = "one device"
	}
	return text
}

// Validate reports every fault.
func (s Strategy) Validate() error {
	var errs faults.List
	errs.If(s.Data < 1 || s.Pipeline < 1 || s.Tensor < 1, "mesh %v: want at least 1 of each", s.Mesh)
	errs.If(s.MicroBatches < 1, "micro-batches: %d, want at least 1", s.MicroBatches)
	errs.If(s.Sharding >= numShardings, "sharding: %v does not exist", s.Sharding)
	errs.If(s.Schedule >= numSchedules, "schedule: %v does not exist", s.Schedule)
	errs.If(s.Sequence && s.Tensor == 1, "sp: sequences are split among the ranks of split products, want tp of at least 2")
	errs.If(s.Vocabulary && s.Tensor == 1, "vocab: a vocabulary is split among the ranks of split products, want tp of at least 2")
	errs.If(s.Experts == 1 || s.Experts < 0 || s.Experts > 0 && s.Data%s.Experts != 0, "ep=%d: experts are shared out among replicas, want ddp of at least 2, and a divisor of it", s.Experts)
	errs.If(s.Context == 1 || s.Context < 0 || s.Context > 0 && s.Data%s.Context != 0, "cp=%d: tokens are shared out among replicas, want ddp of at least 2, and a divisor of it", s.Context)
	errs.If(s.Recompute >= numRecomputes, "recompute: %v does not exist", s.Recompute)
	errs.If(s.Schedule == Interleaved && s.Chunks < 2, "interleaved schedule: %d chunks, want at least 2 (chunks=2)", s.Chunks)
	errs.If(s.Chunks < 1 || s.Schedule != Interleaved && s.Schedule != Free && s.Chunks != 1, "%d chunks: only the interleaved schedule has several", s.Chunks)
	errs.If(s.Chunks > 1 && s.Pipeline > 0 && s.MicroBatches%s.Pipeline != 0, "interleaved schedule: %d micro-batches, want a multiple of the %d stages", s.MicroBatches, s.Pipeline)
	errs.If(s.Bucket < 1, "bucket: %d bytes, want at least 1", s.Bucket)
	return errors.Join(errs...)
}
