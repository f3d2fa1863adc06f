package launch

import (
	"errors"

	"placer/graph/strategy"
)

// vLLM returns the flags of vllm serve (vllm-project/vllm, vllm/engine/arg_utils.py). It chooses
// its own batches: those of a pipeline are what stages have under way. Experts that are shared out are
// so among all ranks of a stage, and each is whole (docs/serving/expert_parallel_deployment.md).
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
	case s.Experts > 0 && s.Experts < s.Data:
		return nil, errors.New("it shares experts out among all replicas")
	case s.Experts > 0 && s.Tensor > 1:
		return nil, errors.New("it shares experts out among the ranks of split products too")
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
