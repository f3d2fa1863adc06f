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
// Where to start. A placement: Placer.Place reads the Features of a problem, and
// Policy.ZeroShot makes rollouts of them under every prior (rollouts.roll) and evaluates the
// best. A rollout decides one unit after another (rollouts.decide): the features of the unit
// on each device (state.survey, state.write), the network's scores (pass.forward), a choice
// (sampler), and what follows for the devices (state.decide, state.run). Training: Pretrain
// takes steps (pretraining.advance), each of which is one of a trainer (trainer.imitate,
// trainer.ppo, trainer.selfLabel, trainer.reinforceTasks); PPO's loss is
// rollouts.ppoGradient. Fine-tuning: Tuner.Place begins with zero-shot samples and takes
// steps (tuning.advance), each of which samples, improves and learns.
//
// It is one package because its parts share three tables that nobody else should see: an
// instance, a rollout's state, and the rows that rollouts record for learning. The files, in the
// order of the algorithm:
//
// What is read of a problem.
//
//   - features.go: Features, a problem at every granularity, each made when it is asked for.
//   - instance.go: a problem at one granularity, units with their work, bytes and neighbours.
//   - order.go: the order in which units are decided, that of a list scheduler.
//   - groups.go: units by chain, segment, layer, and by two rules of thumb.
//   - table.go: what a table of features is, and how rows of it are written.
//   - unitfeatures.go: the features of a unit, which no decision changes.
//   - devicefeatures.go: the features of a unit on a device, given what is decided.
//
// A rollout: one decision after the other.
//
//   - state.go: a rollout under way, the timelines, loads and memory of its devices.
//   - heuristic.go: the prior, a rule of thumb, and the device that it chooses.
//   - devicenames.go: devices by the order of their first use.
//   - encoder.go: GraphSAGE and attention over all units, where the policy has them.
//   - network.go: the scores of the devices for a unit, forward and backward.
//   - held.go: the encoder's keys of the units on each device, and their gradient.
//   - softmax.go: scores to probabilities and to a choice.
//   - rollout.go: rollouts side by side, their refinement, and what they record.
//   - tasks.go: schedule and fusion, decided for all units at once.
//
// Placing without learning.
//
//   - place.go: Placer, the method.
//   - zeroshot.go: rollouts under every prior, and how much work they may be.
//   - shortlist.go: those whose own schedules end soonest.
//   - improver.go: those with the shortest steps on the coarsened graph, and their annealing.
//   - reorder.go: the best of them in another order.
//   - proposals.go: few rollouts, every one of which is judged.
//   - ranking.go: which these are, by what they bring for their work.
//   - trials.go: what they brought on training graphs.
//
// Training on many graphs.
//
//   - pretrainconfig.go: its settings.
//   - pretrain.go: the run, its steps and its surroundings.
//   - stream.go: the random streams of its steps.
//   - case.go: a problem by name, drawn from a family.
//   - example.go: a problem to learn from, with the teacher's decisions.
//   - trainer.go: a step of imitation, of PPO or of self-labelling.
//   - losses.go: their gradients, over recorded decisions.
//   - reward.go: step times to rewards and advantages.
//   - tasktraining.go: a step on schedule and fusion.
//   - distribution.go: how far a graph lies from those trained on.
//
// Policies and their files.
//
//   - policy.go: Policy and its configuration.
//   - parts.go: a configuration without some of the encoder's parts.
//   - file.go: the file of a policy.
//   - checkpoint.go: that of a training run between two steps.
//
// Fine-tuning on the graph at hand.
//
//   - finetune.go: Tuner, the method: the cross-entropy method on per-instance logits.
//   - tuneconfig.go: its settings.
//   - rounds.go: the sizes of its rounds, by the graph.
//   - pace.go: the same under a budget.
//   - tuning.go: the run, from coarse levels to fine ones.
//   - logits.go: what is learned, and a step of its gradient.
//   - perturbation.go: how a sample is drawn.
//   - tuneworker.go: a goroutine that samples, and replays what was sampled elsewhere.
//   - tunesample.go: a round of samples, and those of it that are evaluated.
//   - tuneimprove.go: annealing of the best of a round, before what comes of it is learned from.
//   - tunetasks.go: schedule and fusion beside the placement that is learned.
//   - elite.go: the placements that are learned from.
//   - trajectory.go: such a placement as a level's decisions.
//   - learner.go: how it is learned; by the cross-entropy method.
//   - ppolearner.go: the same by PPO, through the network.
//   - ppotuner.go: PPOTuner, the method that does so.
//   - tunestate.go: the file of a run between two steps.
//
// Letters: N ops, U units, V nodes and T tensors of the coarsened graph, D devices, K
// rollouts, S and F features of a unit and of a unit on a device. Of a rollout, T are its
// decisions.
package sequential
