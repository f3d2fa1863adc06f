package workloads

// families are the textual forms, in the order of List.
func families() []family {
	return []family{
		{"rnnlm", func() ([]field, func() Params) {
			c := DefaultRNNLM(2)
			return []field{
				intField("layers", &c.Layers), intField("unroll", &c.Unroll), intField("batch", &c.Batch), intField("hidden", &c.Hidden),
				intField("vocab", &c.Vocab), boolField("dropout", &c.Dropout), trainField(&c.Train),
			}, func() Params { return c }
		}},
		{"gnmt", func() ([]field, func() Params) {
			c := DefaultGNMT(2)
			return []field{
				intField("layers", &c.Layers), intField("source", &c.Source), intField("target", &c.Target), intField("batch", &c.Batch),
				intField("hidden", &c.Hidden), intField("vocab", &c.Vocab), boolField("dropout", &c.Dropout), trainField(&c.Train),
			}, func() Params { return c }
		}},
		{"trfxl", func() ([]field, func() Params) {
			c := DefaultTransformerXL(2)
			return []field{
				intField("layers", &c.Layers), intField("batch", &c.Batch), intField("sequence", &c.Sequence), intField("segment", &c.Segment),
				intField("hidden", &c.Hidden), intField("ffn", &c.FFN), intField("heads", &c.Heads), intField("head_dim", &c.HeadDim),
				intField("vocab", &c.Vocab), boolField("dropout", &c.Dropout), trainField(&c.Train),
			}, func() Params { return c }
		}},
		{"inception", func() ([]field, func() Params) {
			c := DefaultInception(32)
			return []field{
				intField("batch", &c.Batch), intField("size", &c.Size), intField("classes", &c.Classes), boolField("auxiliary", &c.Auxiliary),
				boolField("fused_norm", &c.FusedNorm), boolField("averages", &c.Averages), trainField(&c.Train),
			}, func() Params { return c }
		}},
		{"amoebanet", func() ([]field, func() Params) {
			c := DefaultAmoebaNet()
			return []field{
				intField("cells", &c.Cells), intField("filters", &c.Filters), intField("batch", &c.Batch), intField("size", &c.Size), intField("classes", &c.Classes),
				boolField("fused_norm", &c.FusedNorm), boolField("averages", &c.Averages), boolField("decay", &c.Decay), trainField(&c.Train),
			}, func() Params { return c }
		}},
		{"wavenet", func() ([]field, func() Params) {
			c := DefaultWaveNet(2)
			return []field{
				intField("stacks", &c.Stacks), intField("layers_per_stack", &c.LayersPerStack), intField("batch", &c.Batch), intField("length", &c.Length),
				intField("residual", &c.Residual), intField("skip", &c.Skip), intField("levels", &c.Levels), trainField(&c.Train),
			}, func() Params { return c }
		}},
		{"llama", func() ([]field, func() Params) {
			c := DefaultLlama()
			return decoderFields(&c), func() Params { return c }
		}},
		{"moe", func() ([]field, func() Params) {
			c := DefaultMoE()
			return append(decoderFields(&c), intField("experts", &c.Experts), intField("top_k", &c.TopK), intField("capacity", &c.Capacity)), func() Params { return c }
		}},
		{"vit", func() ([]field, func() Params) {
			c := DefaultViT()
			return []field{
				intField("layers", &c.Layers), intField("hidden", &c.Hidden), intField("heads", &c.Heads), intField("ffn", &c.FFN), intField("batch", &c.Batch),
				intField("size", &c.Size), intField("patch", &c.Patch), intField("classes", &c.Classes), dtypeField("dtype", &c.DType), trainField(&c.Train),
			}, func() Params { return c }
		}},
	}
}

func decoderFields(c *DecoderConfig) []field {
	return []field{
		intField("layers", &c.Layers), intField("hidden", &c.Hidden), intField("heads", &c.Heads), intField("kv_heads", &c.KVHeads), intField("ffn", &c.FFN),
		intField("vocab", &c.Vocab), intField("seq", &c.Seq), intField("batch", &c.Batch), dtypeField("dtype", &c.DType), trainField(&c.Train),
	}
}
