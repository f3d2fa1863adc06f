// Package gonet owns GO's policy network as one thing: the graph embedding of
// package graphsage, the decision network of package transformerxl, a value, the
// optimiser over their weights, and the file they are kept in.
//
// A Network serves problems of any size. A Batch is one problem:
//
//	backend, _ := nn.NewBackend(nn.Default())
//	net, err := gonet.New(gonet.Default(features, devices), rand.New(rand.NewPCG(seed, 0)), backend)
//	b := &gonet.Batch{X: x, Neighbours: lists, Allowed: mask}
//
//	out, err := net.Forward(b)              // out.Logits [N,A], out.Values [1]
//	ppo.Sample(out.Logits, 1, random, actions, logProb)
//
//	loss, err := net.Backward(b, objective) // adds gradients; objective is a
//	                                        // *ppo.Objective, *nn.CrossEntropy, ...
//	norm, err := net.Update(3e-4)           // clips, takes an Adam step, clears
//
// Package ppo's Trainer runs the whole loop on net.On(b), which implements
// ppo.Policy. With Config.Iterations above 1, a Batch also names Copies and the
// Previous decision of each copy.
//
// A network decides placement, and as Config.Decision says also scheduling and
// fusion priorities: further rows of choices, after the devices, in every
// decision. Output.Tasks are the logits of all.
//
// net.Save writes weights, optimiser state and configuration; Load reads them.
//
// Compiling a graph for a new number of rows takes some milliseconds; the
// network keeps the last few (Config.CachedGraphs).
package gonet
