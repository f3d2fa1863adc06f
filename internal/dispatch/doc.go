// Package dispatch owns the work queue that spreads evaluations over hosts: a
// hub (a NATS server, embedded or external), a controller that submits
// placements and counts every result once, and workers that take them, evaluate
// them and answer. A job whose worker dies is handed to another one; a job that
// nobody can take is evaluated by the controller itself, so a search comes to
// the same plan whatever happens to its workers.
//
// Placements travel as messages, graphs and machines as objects named by their
// hash. Keys and permissions are in keys.go; the subjects are in subjects.go.
package dispatch
