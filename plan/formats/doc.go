// Package formats owns the forms in which other programs take a placement: which
// module, layer or tensor of a model is on which device. Targets is the table of them,
// each with its writer and its reader.
//
// Such programs place modules, not ops. Parts cuts a graph into what they can place: the
// blocks of the model (those whose module path ends in a number, such as
// "model.layers.3") and the modules outside of blocks.
package formats
