// Package hw owns machines: devices, directed links and the routes between
// devices, each figure with its source. Machine files carry units in their
// text.
//
// Letters: D devices.
package hw
