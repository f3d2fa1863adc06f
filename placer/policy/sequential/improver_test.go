package sequential

import "testing"

// improved are the cases on which improvements are tried.
func improved() []Case {
	return []Case{{Workload: "trfxl:layers=2,batch=8,sequence=64,segment=16,hidden=256,ffn=512,heads=2,head_dim=64,vocab=1000", GPU: "p100", Devices: 3}, {Workload: "gnmt:layers=2,source=4,target=4,batch=16,hidden=128,vocab=1000", GPU: "p100", Devices: 4}}
}

// TestImprovedSamples: drafts chosen and improved on the coarsened graph come to something
// shorter, and to the same under the same seed.
func TestImprovedSamples(t *testing.T) {
	for _, c := range improved() {
		f, _ := views(t, c)
		p := policy(t, 3)
		samples, err := p.ZeroShot(t.Context(), f, DefaultSamples)
		if err != nil {
			t.Fatal(err)
		}
		if f.Note() == "" {
			t.Fatalf("%v: no coarsened graph", c)
		}
		made := DefaultSamples - defaultImprover().placements(f.instance(atCells), DefaultSamples)
		if len(samples) <= made {
			t.Fatalf("%v: %d samples, none of them an improvement", c, len(samples))
		}
		if best, draft := Best(samples), Best(samples[:made]); !best.Score.Better(draft.Score) {
			t.Errorf("%v: improvements come to %v, what they began with to %v", c, best.Score, draft.Score)
		}
		f, _ = views(t, c)
		again, err := p.ZeroShot(t.Context(), f, DefaultSamples)
		if err != nil {
			t.Fatal(err)
		}
		if Best(again).Score != Best(samples).Score || len(again) != len(samples) {
			t.Errorf("%v: %v of %d samples, then %v of %d", c, Best(samples).Score, len(samples), Best(again).Score, len(again))
		}
	}
}

// TestZeroShotIsNoWorseThanTheExpert: its placement is among those judged.
func TestZeroShotIsNoWorseThanTheExpert(t *testing.T) {
	for _, c := range improved() {
		f, _ := views(t, c)
		samples, err := policy(t, 3).ZeroShot(t.Context(), f, DefaultSamples)
		if err != nil {
			t.Fatal(err)
		}
		if len(samples) > DefaultSamples {
			t.Errorf("%v: %d samples", c, len(samples))
		}
		expert := Sample{}
		expert.Device = f.coarse.expert
		f.complete(policy(t, 3), &expert)
		if best := Best(samples); expert.Score.Better(best.Score) {
			t.Errorf("%v: %v, the expert has %v", c, best.Score, expert.Score)
		}
	}
}
