package workloads

// families are the textual forms, in the order of List.
func families() []family {
	return []family{
		{"rnnlm", func() ([]field, func() Params) {
			c := DefaultRNNLM(2)
			return append([]field{intField("layers", &c.Layers), intField("unroll", &c.Unroll), intField("batch", &c.Batch), intField("hidden", &c.Hidden),
				intField("vocab", &c.Vocab), boolField("dropout", &c.Dropout)}, trainFields(&c.Train)...), func() Params { return c }
		}},
		{"gnmt", func() ([]field, func() Params) {
			c := DefaultGNMT(2)
			return append([]field{intField("layers", &c.Layers), intField("source", &c.Source), intField("target", &c.Target), intField("batch", &c.Batch),
				intField("hidden", &c.Hidden), intField("vocab", &c.Vocab), boolField("dropout", &c.Dropout)}, trainFields(&c.Train)...), func() Params { return c }
		}},
	}
}
