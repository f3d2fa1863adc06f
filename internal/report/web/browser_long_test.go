//go:build long

package web

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"placer/graph/unit"
	"placer/internal/browser"
	"placer/placer/problem"
)

// TestLargeReport measures the page of gnmt8, unfused, with cells placed in turn: it says its size, when it is ready and how long frames take while
// it is panned. Only errors and requests fail it, and a page above 10 MB.
func TestLargeReport(t *testing.T) {
	if _, err := browser.Find(); err != nil {
		t.Skip(err)
	}
	x := step(t, "gnmt8", 8, func(p *problem.Problem) []uint8 {
		device := make([]uint8, p.Graph.NumOps())
		for u, ops := range p.Units.Levels[unit.Cell].Ops { // in turn, which takes many transfers
			for _, op := range ops {
				device[op] = uint8(u % 8)
			}
		}
		return device
	})
	page := write(t, func(w io.Writer) error { return WriteSearch(w, x) })
	if len(page) > 10e6 {
		t.Errorf("the page has %d bytes", len(page))
	}
	measure(t, page)
}

// TestGivenReport measures a page that a command wrote.
func TestGivenReport(t *testing.T) {
	path := os.Getenv("PLACER_REPORT")
	if path == "" {
		t.Skip("no page is named in PLACER_REPORT; make report-figures does")
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	measure(t, string(page))
}

// measure opens a page and logs how fast it is.
func measure(t *testing.T, page string) {
	t.Helper()
	ctx, b, address := open(t, 1280, 900, func(w io.Writer) error {
		_, err := io.WriteString(w, page)
		return err
	})
	at := ask[float64](t, ctx, b, ready)
	spans := ask[int](t, ctx, b, "placer.panels[0].head.spans")
	t.Logf("%d spans, %.2f MB, ready after %.0f ms", spans, float64(len(page))/1e6, at)
	again := []float64{} // the first time, the browser has just started
	for range 5 {
		if err := b.Open(ctx, address); err != nil {
			t.Fatal(err)
		}
		again = append(again, ask[float64](t, ctx, b, ready))
	}
	slices.Sort(again)
	t.Logf("opened five times more: ready after %.0f to %.0f ms, median %.0f", again[0], again[4], again[2])
	for _, zoom := range []float64{2, 20, 500} {
		before := processorSeconds(t, b.Process())
		f := ask[frames](t, ctx, b, strings.ReplaceAll(panning, "ZOOM", jsonOf(t, zoom)))
		t.Logf("panning at zoom %g: %.1f frames a second, %d of %d late; drawing takes %.1f ms in the median, %.1f at most; %.1f ms of processor time a frame in all processes",
			zoom, f.Rate, f.Late, f.Frames, f.Median, f.Most, 1000*(processorSeconds(t, b.Process())-before)/float64(f.Frames))
		if f.Moved < 100 {
			t.Errorf("the view moved %d times in %d frames", f.Moved, f.Frames)
		}
	}
	quiet(t, b, address)
}

// processorSeconds returns the processor time that a process and all below it have used,
// as /proc tells it, in hundredths of a second; 0 where there is no /proc.
func processorSeconds(t *testing.T, process int) float64 {
	t.Helper()
	type stat struct {
		parent int
		ticks  float64
	}
	all := map[int]stat{}
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, behind, _ := strings.Cut(string(text), ") ") // the name may have spaces
		fields := strings.Fields(behind)
		if len(fields) < 13 {
			continue
		}
		id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		user, _ := strconv.ParseFloat(fields[11], 64)
		system, _ := strconv.ParseFloat(fields[12], 64)
		all[id] = stat{parent, user + system}
	}
	sum := 0.0
	for id := range all {
		for at := id; at > 1; at = all[at].parent {
			if at == process {
				sum += all[id].ticks / 100
				break
			}
		}
	}
	return sum
}

// frames is what panning found.
type frames struct {
	Frames, Late, Moved int
	Rate, Median, Most  float64
}

// panning presses an arrow key in each of 150 frames and looks at when frames come.
const panning = `new Promise(done => {
  const box = document.querySelector(".timeline"), key = k => box.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true, cancelable: true }));
  box.focus();
  placer.show(placer.view.whole / 4, placer.view.whole / 4 + placer.view.whole / ZOOM);
  const times = []; let moved = 0, way = "ArrowRight", began = 0;
  const tick = now => {
    times.push(now);
    if (times.length === 1) began = placer.drawn.length;
    if (times.length > 150) {
      const gaps = times.slice(1).map((t, i) => t - times[i]), drawn = placer.drawn.slice(began).sort((a, b) => a - b);
      done({ Frames: gaps.length, Late: gaps.filter(g => g > 25).length, Moved: moved, Rate: 1000 * gaps.length / (times[times.length - 1] - times[0]), Median: drawn[drawn.length >> 1], Most: drawn[drawn.length - 1] });
      return;
    }
    const from = placer.view.from;
    key(way);
    if (placer.view.from !== from) moved++; else way = way === "ArrowRight" ? "ArrowLeft" : "ArrowRight";
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
})`

// TestAccessibility: axe-core finds no violation on any page, light, dark and on paper.
func TestAccessibility(t *testing.T) {
	path := os.Getenv("PLACER_AXE")
	if path == "" {
		t.Skip("no axe-core; name its axe.min.js in PLACER_AXE (npm pack axe-core)")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	x := expert(t, "rnnlm:layers=2,unroll=3", 2)
	a, c := *x, *x
	a.Title, c.Title = "first", "second"
	pages := map[string]func(io.Writer) error{
		"search":     func(w io.Writer) error { return WriteSearch(w, x) },
		"two plans":  func(w io.Writer) error { return WriteComparedPlans(w, &a, &c) },
		"comparison": func(w io.Writer) error { return WriteComparison(w, recorded(t)) },
		"hardware":   func(w io.Writer) error { return WriteHardware(w, measured(t)) },
		"course":     func(w io.Writer) error { return WritePretraining(w, "run", lossRecords()) },
	}
	for name, f := range pages {
		t.Run(name, func(t *testing.T) {
			ctx, b, address := open(t, 1280, 900, f)
			if strings.Contains(name, "search") || strings.Contains(name, "plans") {
				ask[float64](t, ctx, b, ready)
			}
			if err := b.Evaluate(ctx, string(axe)+"; 0", nil); err != nil {
				t.Fatal(err)
			}
			for _, medium := range [][2]string{{"screen", "light"}, {"screen", "dark"}, {"print", "light"}} {
				if err := b.Media(ctx, medium[0], medium[1]); err != nil {
					t.Fatal(err)
				}
				type violation struct{ ID, Help, Target string }
				r := ask[struct {
					Violations []violation
					Passes     int
				}](t, ctx, b, `axe.run().then(r => ({ Violations: r.violations.map(v => ({ ID: v.id, Help: v.help, Target: v.nodes.map(n => n.target.join(" ") + ": " + n.failureSummary).slice(0, 3).join("; ") })), Passes: r.passes.length }))`)
				for _, v := range r.Violations {
					t.Errorf("%v: %s: %s: %s", medium, v.ID, v.Help, v.Target)
				}
				if r.Passes < 10 {
					t.Errorf("axe found %d rules kept: it has not looked", r.Passes)
				}
				t.Logf("%v: %d violations, %d rules kept", medium, len(r.Violations), r.Passes)
			}
			quiet(t, b, address)
		})
	}
}
