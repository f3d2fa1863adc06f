package launch

import (
	"errors"

	"placer/graph/strategy"
)

// serves reports what no server of r's kind does.
func serves(r Run) error {
	s := r.Strategy
	switch {
	case r.Trains:
		return errors.New("it serves, and the step trains")
	case s.Sharding != strategy.Replicated && s.Data > 1:
		return errors.New("it has no sharded parameters")
	case s.Pipeline > 1 && s.Chunks > 1:
		return errors.New("its stages are one piece each")
	case s.Pipeline == 1 && s.MicroBatches > 1:
		return errors.New("it has no micro-batches but those of a pipeline")
	case s.Experts > 0 && s.Experts < s.Data:
		return errors.New("it shares experts out among all replicas")
	case s.Context > 0:
		return errors.New("it shares no tokens out")
	}
	return nil
}

// vLLM returns the flags of vllm serve (vllm-project/vllm, vllm/engine/arg_utils.py). It chooses
// its own batches: those of a pipeline are what stages have under way. A mixture's experts are shared
// out among all ranks of a stage, replicas' too: each whole on one rank with --enable-expert-parallel
// (docs/serving/expert_parallel_deployment.md), else a part of each on every rank
// (vllm/model_executor/layers/fused_moe/config.py, FusedMoEParallelConfig.make).
func vLLM(r Run) ([]string, error) {
	s := r.Strategy
	if err := serves(r); err != nil {
		return nil, err
	}
	switch {
	case r.Mixture && s.Data > 1 && s.Experts == 0:
		return nil, errors.New("its replicas of a mixture share each expert's columns out, or whole experts (ep); replicas that have all are servers of their own")
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

// sgLang returns the flags of sglang.launch_server (sgl-project/sglang, python/sglang/srt/server_args.py).
// Replicas that attend apart and share experts out are ranks of its tensor parallelism
// (--enable-dp-attention); other replicas are whole models.
func sgLang(r Run) ([]string, error) {
	s := r.Strategy
	if err := serves(r); err != nil {
		return nil, err
	}
	var l list
	switch {
	case s.Sequence || s.Vocabulary:
		return nil, errors.New("it splits no sequences, and vocabularies as it chooses")
	case s.Experts > 0 && s.Tensor*s.Pipeline > 1:
		return nil, errors.New("with experts shared out among replicas it is told of no split products or stages here")
	case s.Experts > 0:
		l.size("--tp-size", s.Data)
		l.size("--dp-size", s.Data)
		l.size("--ep-size", s.Data)
		l.set(true, "--enable-dp-attention")
		return l, nil
	}
	l.size("--tp-size", s.Tensor)
	l.size("--pp-size", s.Pipeline)
	l.size("--dp-size", s.Data)
	return l, nil
}
