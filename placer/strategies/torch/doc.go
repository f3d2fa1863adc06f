// Package torch owns strategies as PyTorch runs them: the file placer strategy 1, which says a
// strategy by the paths of a model's modules, and the way from the graph of a captured step to it
// (docs/adr/0081).
//
// A strategy divides ops; PyTorch divides modules. So a product that is cut must be that of an
// nn.Linear whose columns ranks can take in order, a look-up that of an nn.Embedding, a stage whole
// modules. What is not so is refused by the module's name.
package torch
