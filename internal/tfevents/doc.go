// Package tfevents owns TensorBoard's event files: scalars and histograms over
// the steps of a run.
//
// A file is a row of records, each an Event of TensorFlow's protocol buffers
// (tensorflow/core/util/event.proto and framework/summary.proto, of which the
// fields used here are named in the code) between a length and checksums:
//
//	uint64 length, uint32 masked CRC of the length, data, uint32 masked CRC of the data
//
// all little-endian. The CRC is CRC32-C, masked as (c>>15 | c<<17) + 0xa282ead8.
package tfevents
