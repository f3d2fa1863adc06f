package torch

import (
	"io"

	"placer/internal/jsonx"
)

// format names the version of File.
const format = "placer strategy 1"

// File says how PyTorch divides a step of one model. Paths are those of named_modules.
type File struct {
	Format   string `json:"format"`
	Graph    string `json:"graph"`
	Batch    int64  `json:"batch"` // samples of a step, all devices together
	Trains   bool   `json:"trains"`
	Strategy string `json:"strategy"` // for people, as the table has it

	// Ranks are Mesh.Rank: (stage*Data + replica)*Tensor + part.
	Data         int    `json:"data"`
	Sharding     string `json:"sharding"`
	Pipeline     int    `json:"pipeline"`
	Schedule     string `json:"schedule,omitempty"` // of a pipeline
	Chunks       int    `json:"chunks"`
	Tensor       int    `json:"tensor"`
	MicroBatches int    `json:"micro_batches"`
	Recompute    string `json:"recompute"`
	Vocabulary   bool   `json:"vocabulary"`
	Sequence     bool   `json:"sequence"`
	Context      int    `json:"context,omitempty"`      // neighbouring replicas that share the tokens of the same samples out among themselves
	ExpertRanks  int    `json:"expert_ranks,omitempty"` // neighbouring replicas that share experts out among themselves

	// Layers are modules that are one layer each, in the order in which they run.
	Layers [][]string `json:"layers"`
	// Columns and Rows are linear layers that ranks share out by columns of their product, and by
	// rows of their weight, so that results are added up.
	Columns []string `json:"columns,omitempty"`
	Rows    []string `json:"rows,omitempty"`
	// Parts are, by module, of Columns whose columns are taken apart (queries, keys and values by one
	// layer) the numbers of columns of the parts: each is cut by itself.
	Parts map[string][]int64 `json:"parts,omitempty"`
	// VocabularyColumns are output layers, VocabularyRows tables of embeddings of which each rank
	// has a part of the vocabulary.
	VocabularyColumns []string `json:"vocabulary_columns,omitempty"`
	VocabularyRows    []string `json:"vocabulary_rows,omitempty"`
	// Transposed are those of all these that are no nn.Linear: their weight has a row for each input.
	Transposed []string `json:"transposed,omitempty"`
	// ByRows are modules that work on a T-th of the tokens.
	ByRows []string `json:"by_rows,omitempty"`
	// Experts are modules of mixtures, each of which holds the weights of all experts of a layer, and
	// nothing else.
	Experts []string `json:"experts,omitempty"`
	// Stages, [P*V], are the modules of each stage in the order in which they run: stage k is on the
	// pipeline's rank k mod P.
	Stages [][]string `json:"stages,omitempty"`

	Predicted Predicted `json:"predicted"`
	// Collectives are those of rank 0 in one step.
	Collectives Collectives `json:"collectives"`
}

// Predicted is what a step comes to on the machine that the strategy was chosen for.
type Predicted struct {
	Step  float64 `json:"step_s"`
	Rate  float64 `json:"samples_per_s"`
	Bytes int64   `json:"bytes"` // of the fullest device
}

// Collectives are the calls of one rank in a step, by kind.
type Collectives struct {
	AllReduce     Calls `json:"all_reduce,omitzero"`
	AllGather     Calls `json:"all_gather,omitzero"`
	ReduceScatter Calls `json:"reduce_scatter,omitzero"`
	AllToAll      Calls `json:"all_to_all,omitzero"` // rows to experts and back
	Send          Calls `json:"send,omitzero"`       // to the next or the last stage
}

// Calls are calls of one kind: their number, and the bytes of the whole tensors, that which is
// reduced or scattered, gathered, exchanged or sent.
type Calls struct {
	Calls int   `json:"calls"`
	Bytes int64 `json:"bytes"`
}

// Write writes f as JSON.
func (f *File) Write(w io.Writer) error { return jsonx.Write(w, f) }
