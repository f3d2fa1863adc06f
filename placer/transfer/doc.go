// Package transfer owns the policy that places graphs it never saw: a small
// network that decides units one after the other in the order of a list
// scheduler, its training on many graphs, and its use as it is or fine-tuned.
//
// GO decides all ops at once from an embedding of the graph. Such a policy
// transfers badly: which device number a part of a graph belongs on is a fact of
// that graph alone. Here the question is put so that its answer carries over:
// given what is already decided, how good is each device for the unit whose turn
// it is? Columns of a unit on a device say when it could start there, what would
// have to be sent, how much work and memory the device has, where the unit's
// relatives are (its gradient's or its forward part, its chain, its layer, its
// part of two rules of thumb). None names an op kind, a graph size or a device
// number, all devices share the weights, and of several that are still empty the
// first stands for all: the order of first use is the names of devices.
//
//   - scene.go, static.go: a problem as the policy reads it.
//   - state.go, timeline.go, columns.go, guide.go: a sample under way, what the
//     policy reads of it, and the rule of thumb that advises it.
//   - network.go, rollout.go: scores of devices, samples side by side, drafts.
//   - learn.go, trainer.go: imitation and PPO.
//   - catalogue.go, random.go, problem.go: training graphs.
//   - pretrain.go, finetune.go, place.go: the three uses.
//   - file.go, reach.go: policy files, and how far a policy's training carries.
//
// Letters: N ops, U units, V nodes and T tensors of the contraction, D devices, K
// samples, F columns.
package transfer
