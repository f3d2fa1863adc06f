// Package roofline owns the prediction of how long one op runs alone on one
// device: arithmetic over an achieved rate that depends on the shape, bytes over
// an achieved bandwidth, and the time of a launch.
//
// Model satisfies the cost model of package sim by structure. The constants of
// the matrix-product model are fitted to measured products (Fit) where
// measurements exist, and stated as assumptions where they do not.
//
// Letters: N ops, D devices.
package roofline
