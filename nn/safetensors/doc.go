// Package safetensors owns the file format of checkpoints: named tensors after a
// JSON header, as published under the name safetensors.
//
// A file is an 8-byte little-endian header length, the header, and the data of
// all tensors back to back. Write gives the same bytes for the same content, and
// its checksum in the metadata, which other readers of the format pass over.
// Read accepts only what the format's own rules allow: a header of at most 100
// MB that is one JSON object, no duplicate names, known types, sizes that match
// shapes, and data without gaps, overlaps or trailing bytes.
package safetensors
