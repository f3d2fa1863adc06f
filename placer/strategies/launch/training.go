package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/strategy"
)

var errServes = errors.New("it trains, and the step is a forward pass alone")

// megatronLM returns flags of Megatron-LM's pretrain scripts (NVIDIA/Megatron-LM,
// megatron/training/arguments.py at d98e8a6). It splits vocabularies wherever it splits products,
// and gives stages equal numbers of layers unless told otherwise, and does not start where there are none. Gradients are reduced beside the
// backward pass where it is told so, or where its FSDP shards them, which asserts that checkpoints
// are of its own format. Gradients of bf16 weights it adds up and reduces in f32 unless told
// otherwise; here they have the weights' type. Rows go to experts by all-to-alls where it is told so,
// else every rank gathers those of all.
func megatronLM(r Run) ([]string, error) {
	s := r.Strategy
	switch {
	case !r.Trains:
		return nil, errServes
	case s.Pipeline > 1 && s.Schedule == strategy.GPipe:
		return nil, errors.New("its pipelines are 1F1B and interleaved")
	case s.Experts > 0 && s.Tensor > 1 && !s.Sequence:
		return nil, errors.New("it splits sequences where it shares experts out and splits products")
	}
	var l list
	l.set(r.Weights == graph.BF16, "--bf16", "--grad-reduce-in-bf16")
	l.set(r.Weights == graph.F16, "--fp16")
	l.size("--tensor-model-parallel-size", s.Tensor)
	l.set(s.Sequence, "--sequence-parallel")
	l.size("--pipeline-model-parallel-size", s.Pipeline)
	if s.Experts > 0 { // products of experts are split as others are
		l.size("--expert-model-parallel-size", s.Experts)
		l.size("--expert-tensor-parallel-size", s.Tensor)
		l.set(true, "--moe-token-dispatcher-type", "alltoall")
	}
	if s.Context > 0 {
		l.set(true, "--context-parallel-size", fmt.Sprint(s.Context), "--cp-comm-type", "all_gather")
	}
	if s.Pipeline > 1 && unequal(r.Layers) {
		l.set(true, "--pipeline-model-parallel-layout", layout(r.Layers))
	} else {
		l.size("--num-virtual-stages-per-pipeline-rank", s.Chunks)
	}
	if s.Data > 1 {
		l.set(s.Sharding != strategy.Replicated, "--use-distributed-optimizer")
		switch s.Sharding {
		case strategy.ShardGradients:
			l.fsdp("optim_grads")
		case strategy.ShardAll:
			l.fsdp("optim_grads_params")
		default:
			l.set(true, "--overlap-grad-reduce")
		}
	}
	l.set(s.Recompute == strategy.RecomputeLayers, "--recompute-granularity", "full", "--recompute-method", "uniform", "--recompute-num-layers", "1")
	l.set(s.Recompute == strategy.RecomputeSelective, "--recompute-granularity", "selective")
	l.set(true, "--micro-batch-size", fmt.Sprint(r.micro()), "--global-batch-size", fmt.Sprint(r.Batch))
	return l, nil
}

// unequal reports whether chunks have different numbers of layers.
func unequal(layers []int) bool {
	return len(layers) > 0 && slices.Max(layers) > slices.Min(layers)
}

// layout returns a pipeline's layout as Megatron-LM reads it
// (megatron/core/transformer/pipeline_parallel_layer_layout.py): chunks in their order, E the embedding, t*N so
// many layers, L the loss. It tells the chunks of a rank too.
func layout(layers []int) string {
	parts := make([]string, len(layers))
	for k, n := range layers {
		parts[k] = fmt.Sprintf("t*%d", n)
	}
	return "'E" + strings.Join(parts, "|") + "L'"
}

// fsdp adds the flags of Megatron-FSDP where it shards what is named.
func (l *list) fsdp(shards string) {
	l.set(true, "--use-megatron-fsdp", "--data-parallel-sharding-strategy", shards, "--no-gradient-accumulation-fusion", "--ckpt-format", "fsdp_dtensor")
}

// torch returns the command that runs a strategy's file: a process for each rank, on one host.
func torch(r Run) ([]string, error) {
	s := r.Strategy
	switch {
	case !r.Trains:
		return nil, errServes
	case s.Context > 0 && (s.Pipeline > 1 || s.Tensor > 1 || s.Experts > 0):
		return nil, errors.New("it shares tokens out where nothing but samples is divided otherwise")
	case s.Experts > 0 && s.Tensor > 1:
		return nil, errors.New("it shares experts out where products are whole alone")
	case s.Recompute == strategy.RecomputeSelective:
		return nil, errors.New("what it computes again are whole layers")
	case s.Pipeline > s.MicroBatches && s.Schedule == strategy.OneFOneB:
		return nil, fmt.Errorf("its 1F1B wants as many micro-batches as stages, %d", s.Pipeline)
	}
	return []string{"torchrun", "--nproc-per-node", fmt.Sprint(s.Ranks()), "-m", "placer_torch", "distribute", "--model", "PKG.MODULE:FUNCTION", "--strategy", r.File}, nil
}

// torchtitan returns flags of torchtitan's train.py (pytorch/torchtitan,
// torchtitan/config/job_config.py of 0.2). In a pipeline it keeps parameters that it has gathered
// unless told otherwise. Where it splits products it splits sequences and the loss too. A rank has two
// stages of an interleaved pipeline, other numbers follow from layers that are counted for each stage
// (pipeline_llm).
func torchtitan(r Run) ([]string, error) {
	s := r.Strategy
	switch {
	case !r.Trains:
		return nil, errServes
	case s.Data > 1 && s.Sharding == strategy.ShardOptimizer:
		return nil, errors.New("it shards gradients where it shards the optimizer's state")
	case s.Recompute == strategy.RecomputeSelective:
		return nil, errors.New("what it computes again selectively are other ops than attention's")
	case s.Chunks > 2:
		return nil, errors.New("a rank has two stages of an interleaved pipeline unless pipeline_parallel_layers_per_stage says otherwise, which depends on how its model counts layers")
	case s.Context > 0 && s.Sharding == strategy.Replicated:
		return nil, errors.New("it shards parameters where it shares tokens out")
	case s.Experts > 0 && s.Sharding == strategy.Replicated:
		return nil, errors.New("it shares experts out among replicas that shard parameters")
	}
	var l list
	replicas, shards := s.Data/max(1, s.Context), 1
	if s.Sharding != strategy.Replicated {
		replicas, shards = 1, replicas
	}
	l.set(true, "--parallelism.data_parallel_replicate_degree", fmt.Sprint(replicas), "--parallelism.data_parallel_shard_degree", fmt.Sprint(shards))
	l.set(s.Data > 1 && s.Sharding == strategy.ShardGradients, "--parallelism.fsdp_reshard_after_forward", "never")
	l.set(s.Data > 1 && s.Sharding == strategy.ShardAll && s.Pipeline > 1, "--parallelism.fsdp_reshard_after_forward", "always")
	l.size("--parallelism.tensor_parallel_degree", s.Tensor)
	l.size("--parallelism.context_parallel_degree", s.Context)
	if s.Experts > 0 { // products of experts are split as others are
		l.size("--parallelism.expert_parallel_degree", s.Experts)
		l.size("--parallelism.expert_tensor_parallel_degree", s.Tensor)
	}
	local := r.micro()
	if s.Pipeline > 1 {
		l.size("--parallelism.pipeline_parallel_degree", s.Pipeline)
		schedule := map[strategy.Schedule]string{strategy.GPipe: "GPipe", strategy.OneFOneB: "1F1B", strategy.Interleaved: "Interleaved1F1B"}[s.Schedule]
		l.set(true, "--parallelism.pipeline_parallel_schedule", schedule, "--parallelism.pipeline_parallel_microbatch_size", fmt.Sprint(local))
		local *= int64(s.MicroBatches)
	}
	mode := "none"
	if s.Recompute == strategy.RecomputeLayers {
		mode = "full"
	}
	l.set(true, "--training.local_batch_size", fmt.Sprint(local), "--training.global_batch_size", fmt.Sprint(r.Batch), "--activation_checkpoint.mode", mode)
	return l, nil
}

// deepSpeed returns the part of DeepSpeed's configuration that divides a step (deepspeed.ai,
// configuration JSON). Which activations are computed again is the model's code there.
func deepSpeed(r Run) ([]string, error) {
	s := r.Strategy
	switch {
	case !r.Trains:
		return nil, errServes
	case s.Pipeline > 1 || s.Tensor > 1:
		return nil, errors.New("pipelines and split products are in the model's code there")
	case s.Recompute != strategy.RecomputeNothing:
		return nil, errors.New("what is computed again is in the model's code there")
	case s.Context > 0:
		return nil, errors.New("tokens are shared out in the model's code there (deepspeed.sequence)")
	case s.Experts > 0:
		return nil, fmt.Errorf("experts are shared out in the model's code there (deepspeed.moe.layer.MoE, ep_size=%d)", s.Experts)
	}
	stage := 0
	if s.Data > 1 {
		stage = int(s.Sharding)
	}
	kind := "" // it runs models in f32 unless told otherwise
	if r.Weights == graph.BF16 || r.Weights == graph.F16 {
		kind = fmt.Sprintf(`, "%s": {"enabled": true}`, map[graph.DType]string{graph.BF16: "bf16", graph.F16: "fp16"}[r.Weights])
	}
	return []string{fmt.Sprintf(`{"train_batch_size": %d, "train_micro_batch_size_per_gpu": %d, "gradient_accumulation_steps": %d, "zero_optimization": {"stage": %d}%s}`, r.Batch, r.micro(), s.MicroBatches, stage, kind)}, nil
}
