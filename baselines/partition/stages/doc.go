// Package stages owns placements of whole blocks of a model: the best split into
// contiguous stages, the nearest one to a given plan, and the rules by which runtimes
// split a model themselves (accelerate, vLLM, llama.cpp, torchtitan).
package stages
