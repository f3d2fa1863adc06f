// Package times owns what a file says of how long the ops of a graph take: a
// table of seconds per op and device model, of transfers, and of the machine
// that the file speaks of. Where there is a table it takes the place of the
// roofline model.
//
// Letters: N ops, T tensors.
package times
