// Package trace owns the trace files of a simulated or measured step: Perfetto's
// protobuf and Chrome's JSON, both read by ui.perfetto.dev.
//
// A file has a track of ops for each device, tracks of transfers for each pair of
// devices that has any, a memory counter for each device, and arrows from the op
// that makes a tensor over the transfer to the first op that reads it.
package trace
