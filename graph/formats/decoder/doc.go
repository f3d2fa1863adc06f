// Package decoder owns the files that describe a decoder-only language model without a
// graph: GGUF, safetensors, and Hugging Face's config.json. Their sizes become the
// decoder of package workloads. Weights are never read. A family of decoders is the names
// of its modules and a list of choices (families.go, choices.go); defaults.json has what
// transformers takes where a file says nothing.
//
// What such a file leaves open has names: batch (sequences), seq (tokens of each that a
// step computes) and past (tokens whose keys and values are cached). A prefill is the
// default; seq=1 with past=N is a decoding step. Attention is one kernel, as in FlashAttention,
// soft caps, sinks and windows included; with attention_kernels=3 it is a product, a softmax and a
// product.
package decoder
