// Package cli owns the command line: flags, standard streams, signals, the clock
// and exit codes. Nothing below it knows of these.
//
// Where to start: main.go runs a command and turns its error into an exit code. A command has
// a file of its name, most with three parts: the flags (a struct, whose check reports the
// first fault), the command that declares them, and a method of console that loads, calls the
// library and prints. What commands share: flags.go names graph and machine, load.go reads
// them, output.go prints a document or writes a file, progress.go shows how a search goes.
// The largest command is search: search.go has its flags and its course, settings.go what a
// file may set, session.go the run from settings to a problem, write.go the run folder,
// evaluator.go and hub.go where samples are scored.
package cli
