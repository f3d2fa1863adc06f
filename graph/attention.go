package graph

// Kinds of attention in one kernel (FlashAttention: Dao et al., arXiv:2205.14135 and
// arXiv:2307.08691; memory-efficient attention: Rabe and Staats, arXiv:2112.05682), whose
// scores never leave the chip. Attention reads queries, keys and values, and writes the output
// and, for a gradient, one number a row of queries: the logarithm of the sum of the row's
// exponentials. AttentionGrad reads all of these and the output's gradient, computes the scores
// again, and writes the gradients of queries, keys and values.
const (
	Attention     Kind = "Attention"
	AttentionGrad Kind = "AttentionGrad"
)

// Columns is a view of some columns of a tensor: what reads them reads them where they lie.
const Columns Kind = "Columns"

// CausalConv convolves each column of a sequence by itself, over few tokens: it moves what it reads,
// as elementwise ops do.
const CausalConv Kind = "CausalConv1D"

// Attending is the arithmetic of attention in one kernel.
type Attending struct {
	// Heads are those of keys and values in all samples; queries that share one are rows of it.
	Heads int64
	// Group is how many heads of queries share one of keys and values, 0 for one each.
	Group int64
	// Queries are the rows of a head, Seen the keys that a row meets, in the mean.
	Queries, Seen    int64
	KeyDim, ValueDim int64
}

// Forward returns the products of queries by keys and of weights by values as one: of 4 operations
// for each pair of a query and a key it sees and each column of a head, where keys have as many
// columns as values.
func (a Attending) Forward() GEMM {
	return GEMM{Batch: a.Heads, M: a.Queries, N: a.Seen, K: a.KeyDim + a.ValueDim}
}

// Backward returns the five products of the gradient as one, 2.5 times as many operations: the
// scores again, the gradients of the weights and of the values, of queries and of keys.
func (a Attending) Backward() GEMM {
	return a.byQueries(GEMM{Batch: a.Heads, M: a.Queries, N: a.Seen, K: 3*a.KeyDim + 2*a.ValueDim})
}

// byQueries returns m with a batch of heads of queries. A kernel of the gradient takes these one
// by one, each with its own keys and values, where that of the forward pass may take all that
// share some.
func (a Attending) byQueries(m GEMM) GEMM {
	if g := a.Group; g > 1 && m.M%g == 0 {
		m.Batch, m.M = m.Batch*g, m.M/g
	}
	return m
}

// AttentionGradGEMM returns the products of the gradient of attention whose forward products are m,
// where group heads of queries share one of keys and values and keys have as many columns as values.
func AttentionGradGEMM(m GEMM, group int64) GEMM {
	m.K = (m.K*5 + 1) / 2
	return Attending{Group: group}.byQueries(m)
}

// Seen returns how many keys each of the last queries tokens sees in the mean, rounded up,
// behind past tokens before: in causal attention itself and all before it, but no more than
// window where that is not 0.
func Seen(queries, past, window int64) int64 {
	if window <= 0 || window >= past+queries {
		return past + (queries+2)/2
	}
	if window <= past+1 {
		return window
	}
	ramp := window - past // queries that see fewer keys than window, and the first that sees as many
	total := float64(ramp)*float64(past) + float64(ramp)*float64(ramp+1)/2 + float64(queries-ramp)*float64(window)
	mean := int64(total / float64(queries))
	if float64(mean)*float64(queries) < total {
		mean++
	}
	return mean
}
