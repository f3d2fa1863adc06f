// Package merge owns the rewrite that servers of decoders make when they load weights: products
// that read the same activation become one, of queries, keys and values in one kernel and of gate
// and up in another (vLLM's QKVParallelLinear and MergedColumnParallelLinear, SGLang's of the same
// names, TensorRT-LLM's attention.qkv and fused gated MLP).
package merge
