// Package decoder owns the files that describe a decoder-only language model without a
// graph: GGUF, safetensors, and Hugging Face's config.json. Their sizes become the
// decoder of package workloads. Weights are never read.
//
// What such a file leaves open has names: batch (sequences), seq (tokens of each that a
// step computes) and past (tokens whose keys and values are cached). A prefill is the
// default; seq=1 with past=N is a decoding step.
package decoder
