// Package cpsat owns the use of CP-SAT, the constraint solver of OR-Tools: a
// builder of its models, its wire format, and its shared library, opened while
// the program runs.
//
// Nothing is linked and no C compiler is needed. Open looks for libortools.so in
// $PLACER_ORTOOLS (the file or a folder that holds it), where the dynamic loader
// looks, and in the places where Python's package ortools lies; it answers
// ErrUnavailable where there is none. Models and responses cross the border as
// serialized protocol buffers (CpModelProto, SatParameters, CpSolverResponse);
// only the fields that this package uses are written and read, and fields that a
// later version adds are skipped.
//
// The solver knows integers only: times have to be scaled, and what is proven is
// proven of the scaled model.
package cpsat
