package launch

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/workloads"
)

func run(t *testing.T, text string, batch int64, trains bool) Run {
	t.Helper()
	s, err := strategy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return Run{Strategy: s, Batch: batch, Trains: trains, File: "strategy.json"}
}

// TestMixtureOnVLLM: without --enable-expert-parallel vLLM parts each expert among all ranks, those of
// replicas too: at TP = 1 and DP = 2 experts have a tensor parallel size of 2 (vllm,
// fused_moe/config.py, the examples of FusedMoEParallelConfig.make); with it experts are whole.
func TestMixtureOnVLLM(t *testing.T) {
	p, err := Find("vllm")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"ddp=2":             "!servers of their own",
		"ddp=2 tp=2":        "!servers of their own",
		"ddp=2 ep":          "--data-parallel-size 2 --enable-expert-parallel",
		"tp=4":              "--tensor-parallel-size 4",
		"1f1b=2 tp=2 mb=2":  "--tensor-parallel-size 2 --pipeline-parallel-size 2",
		"ddp=2 ep tp=2":     "!split products too",
		"ddp=2 ep 1f1b=2":   "--pipeline-parallel-size 2 --data-parallel-size 2 --enable-expert-parallel",
		"one device":        "",
		"1f1b=4 mb=4":       "--pipeline-parallel-size 4",
		"ddp=4 ep=2 1f1b=2": "!among all replicas",
		"ddp=2 1f1b=2 mb=2": "!servers of their own",
	} {
		r := run(t, text, 64, false)
		r.Mixture = true
		got, err := p.Flags(r)
		if why, refused := strings.CutPrefix(want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %q, %v, want an error with %q", text, got, err, why)
			}
		} else if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		program, strategy string
		trains            bool
		want              string // flags, or after "!" the error
	}{
		{"sglang", "one device", false, ""},
		{"sglang", "ddp=2 tp=2", false, "--tp-size 2 --dp-size 2"},
		{"sglang", "tp=2", true, "!the step trains"},
		{"sglang", "ddp=2 ep tp=2", false, "!no split products"},
		{"sglang", "zero-3=8", false, "!sharded"},
		{"vllm", "one device", false, ""},
		{"vllm", "ddp=2 1f1b=2 tp=2 mb=4", false, "--tensor-parallel-size 2 --pipeline-parallel-size 2 --data-parallel-size 2"},
		{"vllm", "ddp=2 ep 1f1b=2 mb=4", false, "--pipeline-parallel-size 2 --data-parallel-size 2 --enable-expert-parallel"},
		{"vllm", "ddp=2 ep tp=2", false, "!split products too"},
		{"vllm", "ddp=8 ep=4", false, "!among all replicas"},
		{"vllm", "zero-3=8", false, "!sharded"},
		{"vllm", "tp=8 sp", false, "!sequences"},
		{"vllm", "tp=8", true, "!serves"},
		{"vllm", "interleaved=4 chunks=2 mb=4", false, "!one piece"},
		{"vllm", "mb=4", false, "!micro-batches"},
		{"megatron-lm", "zero-1=2 interleaved=4 chunks=2 tp=2 vocab sp mb=4 recompute", true, "--tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 --use-distributed-optimizer --overlap-grad-reduce --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --micro-batch-size 8 --global-batch-size 64"},
		{"megatron-lm", "zero-3=8", true, "--use-distributed-optimizer --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --no-gradient-accumulation-fusion --ckpt-format fsdp_dtensor --micro-batch-size 8 --global-batch-size 64"},
		{"megatron-lm", "tp=8 vocab sp mb=4 recompute=selective", true, "--tensor-model-parallel-size 8 --sequence-parallel --recompute-granularity selective --micro-batch-size 16 --global-batch-size 64"},
		{"megatron-lm", "gpipe=4 mb=8", true, "!1F1B"},
		{"megatron-lm", "zero-1=8 ep=4 mb=4", true, "--expert-model-parallel-size 4 --moe-token-dispatcher-type alltoall --use-distributed-optimizer --overlap-grad-reduce --micro-batch-size 2 --global-batch-size 64"},
		{"megatron-lm", "ddp=4 ep tp=2 vocab sp", true, "--tensor-model-parallel-size 2 --sequence-parallel --expert-model-parallel-size 4 --expert-tensor-parallel-size 2 --moe-token-dispatcher-type alltoall --overlap-grad-reduce --micro-batch-size 16 --global-batch-size 64"},
		{"megatron-lm", "ddp=4 ep tp=2", true, "!splits sequences"},
		{"megatron-lm", "zero-3=8 ep", true, "--expert-model-parallel-size 8 --moe-token-dispatcher-type alltoall --use-distributed-optimizer --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --no-gradient-accumulation-fusion --ckpt-format fsdp_dtensor --micro-batch-size 8 --global-batch-size 64"},
		{"torchtitan", "ddp=8 ep", true, "!shard parameters"},
		{"torchtitan", "zero-3=4 ep=2 tp=2", true, "--parallelism.data_parallel_replicate_degree 1 --parallelism.data_parallel_shard_degree 4 --parallelism.tensor_parallel_degree 2 --parallelism.expert_parallel_degree 2 --parallelism.expert_tensor_parallel_degree 2 --training.local_batch_size 16 --training.global_batch_size 64 --activation_checkpoint.mode none"},
		{"deepspeed", "zero-1=8 ep", true, "!ep_size=8"},
		{"megatron-lm", "zero-1=8 cp=4", true, "--context-parallel-size 4 --cp-comm-type all_gather --use-distributed-optimizer --overlap-grad-reduce --micro-batch-size 32 --global-batch-size 64"},
		{"megatron-lm", "ddp=2 cp 1f1b=2 tp=2 vocab sp mb=4", true, "--tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 2 --context-parallel-size 2 --cp-comm-type all_gather --overlap-grad-reduce --micro-batch-size 16 --global-batch-size 64"},
		{"torchtitan", "zero-3=8 cp=4 recompute", true, "--parallelism.data_parallel_replicate_degree 1 --parallelism.data_parallel_shard_degree 2 --parallelism.context_parallel_degree 4 --training.local_batch_size 32 --training.global_batch_size 64 --activation_checkpoint.mode full"},
		{"torchtitan", "ddp=8 cp", true, "!shards parameters"},
		{"deepspeed", "zero-1=8 cp", true, "!deepspeed.sequence"},
		{"torch", "zero-3=8 cp", true, "torchrun --nproc-per-node 8 -m placer_torch distribute --model PKG.MODULE:FUNCTION --strategy strategy.json"},
		{"torch", "ddp=2 cp 1f1b=2 mb=2", true, "!nothing but samples"},
		{"vllm", "ddp=8 cp", false, "!no tokens out"},
		{"megatron-lm", "tp=8", false, "!trains"},
		{"torchtitan", "zero-3=4 1f1b=2 mb=8 recompute", true, "--parallelism.data_parallel_replicate_degree 1 --parallelism.data_parallel_shard_degree 4 --parallelism.fsdp_reshard_after_forward always --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule 1F1B --parallelism.pipeline_parallel_microbatch_size 2 --training.local_batch_size 16 --training.global_batch_size 64 --activation_checkpoint.mode full"},
		{"torchtitan", "ddp=2 tp=4 mb=4", true, "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 1 --parallelism.tensor_parallel_degree 4 --training.local_batch_size 8 --training.global_batch_size 64 --activation_checkpoint.mode none"},
		{"torchtitan", "zero-1=8", true, "!gradients"},
		{"torchtitan", "zero-3=2 interleaved=4 chunks=2 mb=4", true, "--parallelism.data_parallel_replicate_degree 1 --parallelism.data_parallel_shard_degree 2 --parallelism.fsdp_reshard_after_forward always --parallelism.pipeline_parallel_degree 4 --parallelism.pipeline_parallel_schedule Interleaved1F1B --parallelism.pipeline_parallel_microbatch_size 8 --training.local_batch_size 32 --training.global_batch_size 64 --activation_checkpoint.mode none"},
		{"torchtitan", "interleaved=4 chunks=4 mb=4", true, "!two stages"},
		{"torchtitan", "tp=8 recompute=selective", true, "!selectively"},
		{"torch", "zero-3=2 tp=4 vocab sp mb=4 recompute", true, "torchrun --nproc-per-node 8 -m placer_torch distribute --model PKG.MODULE:FUNCTION --strategy strategy.json"},
		{"torch", "1f1b=4 tp=2 mb=4", true, "torchrun --nproc-per-node 8 -m placer_torch distribute --model PKG.MODULE:FUNCTION --strategy strategy.json"},
		{"torch", "1f1b=8 mb=4", true, "!1F1B wants"},
		{"torch", "zero-3=8 ep=4", true, "torchrun --nproc-per-node 8 -m placer_torch distribute --model PKG.MODULE:FUNCTION --strategy strategy.json"},
		{"torch", "ddp=4 ep tp=2", true, "!products are whole"},
		{"torch", "ddp=4 ep 1f1b=2 mb=2", true, "torchrun --nproc-per-node 8 -m placer_torch distribute --model PKG.MODULE:FUNCTION --strategy strategy.json"},
		{"torch", "tp=8", false, "!trains"},
		{"torch", "tp=8 recompute=selective", true, "!whole layers"},
		{"deepspeed", "zero-2=8 mb=2", true, `{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2}}`},
		{"deepspeed", "tp=8", true, "!model's code"},
		{"deepspeed", "zero-1=8 recompute", true, "!computed again"},
	} {
		p, err := Find(c.program)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Flags(run(t, c.strategy, 64, c.trains))
		if why, refused := strings.CutPrefix(c.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s, %s: %q, %v, want an error with %q", c.program, c.strategy, got, err, why)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s, %s:\n%q, %v, want\n%q", c.program, c.strategy, got, err, c.want)
		}
	}
	if _, err := Find("fairscale"); err == nil || !strings.Contains(err.Error(), "deepspeed, megatron-lm, sglang, torch, torchtitan, vllm") {
		t.Errorf("an unknown program: %v", err)
	}
}

// TestServing: a server is told of the sequences that it has at once, vLLM of those of each replica that
// attends, SGLang of all.
func TestServing(t *testing.T) {
	for _, c := range []struct {
		program, strategy string
		cache8            bool
		want              string
	}{
		{"vllm", "one device", false, "--max-num-seqs 64"},
		{"vllm", "1f1b=2 tp=2", true, "--tensor-parallel-size 2 --pipeline-parallel-size 2 --max-num-seqs 64 --kv-cache-dtype fp8"},
		{"vllm", "ddp=8 ep", false, "--data-parallel-size 8 --enable-expert-parallel --max-num-seqs 8"},
		{"sglang", "1f1b=2 tp=2", true, "--tp-size 2 --pp-size 2 --max-running-requests 64 --kv-cache-dtype fp8_e4m3"},
		{"sglang", "ddp=8 ep", false, "--tp-size 8 --dp-size 8 --ep-size 8 --enable-dp-attention --max-running-requests 64"},
	} {
		p, err := Find(c.program)
		if err != nil {
			t.Fatal(err)
		}
		s, err := strategy.Parse(c.strategy)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Serving(s, 64, c.cache8); err != nil || got != c.want {
			t.Errorf("%s, %s: %q, %v, want %q", c.program, c.strategy, got, err, c.want)
		}
	}
	if got := strings.Join(Servers(), " "); got != "sglang vllm" {
		t.Errorf("servers are %s", got)
	}
}

// TestLayout: Megatron-LM is told of stages that have unequal numbers of layers, with which it would not
// start, and then not of chunks, which the layout tells.
func TestLayout(t *testing.T) {
	p, err := Find("megatron-lm")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		strategy string
		layers   []int
		want     string
	}{
		{"1f1b=4 mb=4", []int{16, 15, 15, 15}, "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*16|t*15|t*15|t*15L' --micro-batch-size 16"},
		{"interleaved=2 chunks=2 mb=4", []int{2, 2, 2, 1}, "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*2|t*2|t*2|t*1L' --micro-batch-size 16"},
		{"interleaved=2 chunks=2 mb=4", []int{2, 2, 2, 2}, "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 --micro-batch-size 16"},
		{"1f1b=4 mb=4", nil, "--pipeline-model-parallel-size 4 --micro-batch-size 16"},
		{"tp=4 mb=4", []int{61}, "--tensor-model-parallel-size 4 --micro-batch-size 16"},
	} {
		r := run(t, c.strategy, 64, true)
		r.Layers = c.layers
		if got, err := p.Flags(r); err != nil || got != c.want+" --global-batch-size 64" {
			t.Errorf("%s: %q, %v, want %q", c.strategy, got, err, c.want)
		}
	}
}

// TestFlagsDivideTheBatch: what a program is told of batches and ranks divides as the strategy does.
func TestFlagsDivideTheBatch(t *testing.T) {
	number := func(flags, name string, none int) int {
		m := regexp.MustCompile(regexp.QuoteMeta(name) + ` (\d+)`).FindStringSubmatch(flags)
		if m == nil {
			return none
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	for _, text := range []string{"one device", "ddp=8 mb=2", "zero-3=8", "zero-3=2 1f1b=2 tp=2 mb=4", "ddp=2 interleaved=4 chunks=2 mb=8", "tp=8 mb=4", "zero-2=4 mb=4"} {
		r := run(t, text, 128, true)
		s := r.Strategy
		if p, _ := Find("torchtitan"); true {
			flags, err := p.Flags(r)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			data := number(flags, "replicate_degree", 1) * number(flags, "shard_degree", 1)
			if got := data * number(flags, "tensor_parallel_degree", 1) * number(flags, "pipeline_parallel_degree", 1); got != s.Ranks() {
				t.Errorf("%s: %d ranks of torchtitan, want %d", text, got, s.Ranks())
			}
			local := number(flags, "local_batch_size", 0)
			micro := number(flags, "microbatch_size", local)
			if local%micro != 0 || data*micro*s.MicroBatches != 128 {
				t.Errorf("%s: torchtitan's micro-batches of %d in local batches of %d", text, micro, local)
			}
		}
		p, _ := Find("megatron-lm")
		flags, err := p.Flags(r)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		model := number(flags, "--tensor-model-parallel-size", 1) * number(flags, "--pipeline-model-parallel-size", 1)
		if data := s.Ranks() / model; data*number(flags, "--micro-batch-size", 0)*s.MicroBatches != number(flags, "--global-batch-size", 0) {
			t.Errorf("%s: Megatron-LM by %s", text, flags)
		}
		p, _ = Find("deepspeed")
		flags, err = p.Flags(r)
		if err != nil {
			continue
		}
		var config struct {
			All   int `json:"train_batch_size"`
			Micro int `json:"train_micro_batch_size_per_gpu"`
			Steps int `json:"gradient_accumulation_steps"`
		}
		if err := json.Unmarshal([]byte(flags), &config); err != nil || config.Micro*config.Steps*s.Ranks() != config.All {
			t.Errorf("%s: DeepSpeed by %s (%v)", text, flags, err)
		}
	}
}

// TestWeightTypes: programs are told the type that the prediction's weights and gradients have.
func TestWeightTypes(t *testing.T) {
	for _, c := range []struct {
		program string
		weights graph.DType
		want    string
	}{
		{"megatron-lm", graph.BF16, "--bf16 --grad-reduce-in-bf16 --use-distributed-optimizer"},
		{"megatron-lm", graph.F16, "--fp16 --use-distributed-optimizer"},
		{"deepspeed", graph.BF16, `"bf16": {"enabled": true}}`},
		{"deepspeed", graph.F16, `"fp16": {"enabled": true}}`},
	} {
		p, err := Find(c.program)
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, "zero-1=8", 64, true)
		r.Weights = c.weights
		if got, err := p.Flags(r); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s, %v: %q, %v, want %q in it", c.program, c.weights, got, err, c.want)
		}
	}
	g, err := workloads.Build("llama:layers=1,hidden=64,heads=4,kv_heads=4,ffn=64,vocab=64,seq=8,master_weights=true")
	if err != nil {
		t.Fatal(err)
	}
	if got := WeightsOf(g); got != graph.BF16 {
		t.Errorf("a Llama's weights are %v", got)
	}
}
