package launch

import (
	"errors"

	"placer/graph/strategy"
)

// vLLM returns the flags of vllm serve (vllm-project/vllm, vllm/engine/arg_utils.py). It chooses
// its own batches: those of a pipeline are what stages have under way. A mixture's experts are shared
// out among all ranks of a stage, replicas' too: each whole on one rank with --enable-expert-parallel
// (docs/serving/expert_parallel_deployment.md), else a part of each on every rank
// (vllm/model_executor/layers/fused_moe/config.py, FusedMoEParallelConfig.make).
func vLLM(r Run) ([]string, error) {
	s := r.Strategy
	switch {
	case r.Trains:
		return nil, errors.New("it serves, and the step trains")
	case s.Sharding != strategy.Replicated && s.Data > 1:
		return nil, errors.New("it has no sharded parameters")
	case s.Pipeline > 1 && s.Chunks > 1:
		return nil, errors.New("its stages are one piece each")
	case s.Pipeline == 1 && s.MicroBatches > 1:
		return nil, errors.New("it has no micro-batches but those of a pipeline")
	case r.Mixture && s.Data > 1 && s.Experts == 0:
		return nil, errors.New("its replicas of a mixture share each expert's columns out, or whole experts (ep); replicas that have all are servers of their own")
	case s.Experts > 0 && s.Experts < s.Data:
		return nil, errors.New("it shares experts out among all replicas")
	case s.Experts > 0 && s.Tensor > 1:
		return nil, errors.New("it shares experts out among the ranks of split products too")
	case s.Context > 0:
		return nil, errors.New("it shares no tokens out")
	case s.Sequence || s.Vocabulary:
		return nil, errors.New("sequences are split by its compiler's settings alone")
	}
	var l list
	l.size("--tensor-parallel-size", s.Tensor)
	l.size("--pipeline-parallel-size", s.Pipeline)
	l.size("--data-parallel-size", s.Data)
	l.set(s.Experts > 0, "--enable-expert-parallel")
	return l, nil
}
