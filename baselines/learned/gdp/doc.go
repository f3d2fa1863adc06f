// Package gdp owns the placer of "GDP: Generalized Device Placement for Dataflow
// Graphs" (2019), the predecessor of GO: GraphSAGE and Transformer-XL trained by
// PPO, with the average reward of all earlier trials as baseline, placement alone,
// and dense layers modulated by the features of the graph. GDP-one trains on the
// graph that it places, GDP-batch trains one policy on several.
//
// The network and its training are those of gonet and ppo, configured.
package gdp
