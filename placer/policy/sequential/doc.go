// Package sequential owns the policy that places graphs it never saw: a small
// network that decides units one after the other in the order of a list
// scheduler, its training on many graphs, and its use as it is or fine-tuned.
//
// GO decides all ops at once from an embedding of the graph. Such a policy
// transfers badly: which device number a part of a graph belongs on is a fact of
// that graph alone. Here the question is put so that its answer carries over:
// given what is already decided, how good is each device for the next unit?
// Features of a unit on a device say when it could start there, what would
// have to be sent, how much work and memory the device has, where the rest of the
// unit's chain, layer and pass is, and what a rule of thumb would choose. None
// names an op kind, a graph size or a device number, all devices share the
// weights, and of several that are still empty the first stands for all: the order
// of first use is the names of devices.
//
// The files in the order of the algorithm:
//
//   - What is read: case.go a problem by name; features.go, instance.go, order.go,
//     groups.go a problem at each granularity; unitfeatures.go, devicefeatures.go
//     the tables of features.
//   - How it decides: state.go, heuristic.go a rollout under way and its heuristic
//     prior; encoder.go GraphSAGE and attention over the units, where there are; network.go,
//     softmax.go scores and probabilities; held.go keys of what devices hold; rollout.go
//     rollouts side by side and their refinement; tasks.go schedule and fusion.
//   - Zero-shot: zeroshot.go, shortlist.go, improver.go, place.go; where all are judged proposals.go,
//     trials.go what they came to, ranking.go their order.
//   - Training: example.go problems, drawn or of a corpus; losses.go, trainer.go
//     imitation, self-labelling and PPO; tasktraining.go schedule and fusion; pretrainconfig.go, pretrain.go, stream.go the run.
//   - Files: policy.go, file.go, checkpoint.go; distribution.go how far a graph lies
//     from those trained on.
//   - Fine-tuning: tuneconfig.go, rounds.go, pace.go its settings; finetune.go, tuning.go
//     the run; logits.go what is learned; perturbation.go, tuneworker.go, tunesample.go,
//     elite.go a round; tunestate.go its file; reinforcetuner.go PPO through the network.
//
// Letters: N ops, U units, V nodes and T tensors of the coarsened graph, D devices, K
// rollouts, S and F features of a unit and of a unit on a device.
package sequential
