// Package strategy owns the graphs of a training step that many devices share: the step
// in micro-batches, by replicas of the model (data parallel), by stages of it (pipeline)
// and by parts of its products (tensor parallel), with the communication that each needs,
// as ops and edges of an ordinary graph that the simulator judges like any other.
//
// A Strategy is a mesh of ranks, what the replicas share out, and the order of the
// micro-batches. Derive makes its step from two graphs of the same model, of one
// micro-batch and of the whole batch:
//
//   - Ops that hold what all micro-batches read, and what is computed of that alone, are
//     there once for a replica. Ops of the forward and the backward pass are there once
//     for every micro-batch, as the micro-batch's graph has them. The update is there
//     once, as the whole batch's graph has it.
//   - A gradient is summed over the micro-batches in a buffer of its size and type, which is
//     held throughout, one AssignAdd each (Megatron-LM's main_grad, which is of f32 for weights
//     of bf16 too, and so twice as large there). Gradients that list rows are concatenated, as
//     TensorFlow does. What a buffer is assigned (statistics of batch norm) is the last
//     micro-batch's, of each replica by itself.
//   - Replicas reduce gradients bucket by bucket, in the order in which the last
//     micro-batch completes them, on a stream of their own beside the backward pass
//     (PyTorch's DistributedDataParallel: Li et al., VLDB 2020). Sharding says what they
//     share out (ZeRO: Rajbhandari et al., SC 2020; DeepSpeed's stages 1 to 3, PyTorch's
//     ZeroRedundancyOptimizer and FSDP).
//   - Stages run forward and backward passes of micro-batches in the order of a Schedule,
//     one after another. A weight that several of them read is on each (tied.go).
//   - Tensor parallelism splits attention and feed-forward blocks between a product that
//     is cut by columns and one that is cut by rows (Megatron-LM: Shoeybi et al.,
//     arXiv:1909.08053, section 3). Blocks are found by structure; see split.go. Output layers
//     and embeddings may be split by the vocabulary too (vocabulary.go), and what is between
//     blocks by rows (sequence parallelism: Korthikanti et al., arXiv:2205.05198; rows.go).
//   - Expert parallelism shares the experts of a mixture out among replicas, which send one another
//     the rows that these are chosen for (GShard: Lepikhin et al., arXiv:2006.16668, section 3;
//     mixtures.go, experts.go).
//   - Context parallelism shares the tokens of samples out among replicas, which gather one another's
//     keys and values for attention (tokens.go, emittokens.go).
//
// Collectives are rings: 2(D-1) steps in which each rank sends a D-th to the next (all-reduce),
// or D-1 steps (reduce-scatter, all-gather); an all-to-all is D-1 rounds, in each of which a rank
// sends a part to another. Every step is a transfer between two ranks' streams. Where all ranks of a group do the same, Derive can emit one of them (Fold), with one
// op in place of each ring, so that the graph of a strategy on 8 devices is as large as on 1; and
// an op of each rank may stand for a collective that is no ring (Options.One).
//
// Letters: N ops, D replicas, P stages, T tensor-parallel ranks, M micro-batches, V chunks
// of a stage.
package strategy
