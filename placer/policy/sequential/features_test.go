package sequential

import (
	"slices"
	"strings"
	"testing"

	"placer/graph/unit"
	"placer/internal/fsx"
	"placer/nn/safetensors"
	"placer/plan"
)

// What is placed is decided with partial gradients apart, what is learned from by
// plain cells.
func TestFeaturesHavePartialGradients(t *testing.T) {
	fine, plain := views(t, Case{Workload: "trfxl:layers=1,batch=8,sequence=96,segment=32,hidden=64,ffn=64,heads=2,head_dim=32,vocab=100", GPU: "p100", Devices: 2})
	p := plain.problem
	cells := p.Units.Levels[unit.Cell].NumUnits()
	if a, b := fine.instance(atCells).decisions, plain.instance(atCells).decisions; a <= cells || b != cells {
		t.Errorf("%d and %d decisions, want more than the %d cells and as many", a, b, cells)
	}
	if !slices.Equal(fine.summary(), plain.instance(atCells).summary()) {
		t.Error("a graph with partial gradients is not summarised as in training")
	}
	samples, err := policy(t, 6).ZeroShot(t.Context(), fine, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		if got := p.Evaluator.Evaluate(plan.Decision{Device: s.Device, Priority: p.Priority}); got != s.Score {
			t.Errorf("a sample of score %v is judged %v", s.Score, got)
		}
	}
}

// TestFeatureTables: features keep the names and the places that version 2 of policy
// files was trained with. Whoever changes a table changes featuresVersion.
func TestFeatureTables(t *testing.T) {
	const onUnit = "share load forward backward weights before after slack place exchange exchange_of_load resident chain_load chain_place " +
		"segment_load segment_place layer_load layer_place neighbours pieces devices_inverse parallel traffic memory latency cell segment"
	const onDevice = "start_of_unit start_of_mean idle_of_unit idle_of_mean free_of_mean load_over_least load load_after arrival_of_unit arrival_of_mean " +
		"transfer_of_unit transfer_of_mean saved_share counterpart no_counterpart chain_last chain_share segment_last segment_share layer_last layer_share " +
		"expert_last expert_share expert_new block_last block_share block_new held fits fresh last pipeline in_block earliest least_loaded used " +
		"prior prior_gap_of_unit prior_gap_of_mean by_list by_expert by_block load_weight transfer_weight colocate insertion learned_weight refining previous"
	if got := strings.Join(names(t, unitFeatures), " "); got != onUnit {
		t.Errorf("features of a unit: %s", got)
	}
	if got := strings.Join(names(t, deviceFeatures), " "); got != onDevice {
		t.Errorf("features of a unit on a device: %s", got)
	}
	data, err := fsx.ReadFile("../../pretrained/policy.safetensors.gz", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{"weight/static": numUnitFeatures, "weight/dynamic": numDeviceFeatures, "weight/straight": numDeviceFeatures}
	for _, x := range f.Tensors {
		if want, ok := rows[x.Name]; ok && x.Shape[0] != want {
			t.Errorf("the built-in policy reads %d features in %s, want %d", x.Shape[0], x.Name, want)
		}
		delete(rows, x.Name)
	}
	if featuresVersion != 2 || len(rows) > 0 {
		t.Errorf("version %d, tensors missing: %v", featuresVersion, rows)
	}
	for _, j := range tied {
		if j < 0 {
			t.Error("a tied feature is in no table")
		}
	}
}

// names returns those of a table and checks that each is unique and described.
func names[T any](t *testing.T, table []feature[T]) (all []string) {
	t.Helper()
	for i, f := range table {
		if f.doc == "" || f.of == nil || indexOf(table, f.name) != i {
			t.Errorf("feature %d, %q, is not described or not unique", i, f.name)
		}
		all = append(all, f.name)
	}
	return all
}
