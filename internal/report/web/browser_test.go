package web

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"placer/internal/browser"
)

var update = flag.Bool("update", false, "rewrite the golden picture")

// open writes a page and opens it in a headless Chromium; without one it skips the test.
func open(t *testing.T, width, height int, f func(io.Writer) error) (context.Context, *browser.Browser, string) {
	t.Helper()
	path, err := browser.Find()
	if err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(write(t, f)), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	b, err := browser.Start(ctx, path, width, height)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	address := "file://" + file
	if err := b.Open(ctx, address); err != nil {
		t.Fatal(err)
	}
	return ctx, b, address
}

// ask evaluates an expression of the page.
func ask[T any](t *testing.T, ctx context.Context, b *browser.Browser, expression string) (answer T) {
	t.Helper()
	if err := b.Evaluate(ctx, expression, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// ready resolves when the timeline is there, to the milliseconds since the navigation.
const ready = `new Promise(done => { const look = () => { const m = performance.getEntriesByName("placer-ready")[0]; m ? done(m.startTime) : setTimeout(look, 2); }; look(); })`

// quiet fails the test where the page reported an error or asked for anything but itself.
func quiet(t *testing.T, b *browser.Browser, address string) {
	t.Helper()
	seen := b.Seen()
	for _, e := range seen.Errors {
		t.Errorf("the console says %s", e)
	}
	for _, r := range seen.Requests {
		if r != address {
			t.Errorf("the page asked for %s", r)
		}
	}
	if len(seen.Requests) == 0 {
		t.Error("no request was seen, not even that of the page: requests are not watched")
	}
}

// TestKeyboard: the timeline is reached by the tab key, and every key does what the page
// says.
func TestKeyboard(t *testing.T) {
	x := expert(t, "rnnlm:layers=2,unroll=3", 2)
	ctx, b, address := open(t, 1280, 900, func(w io.Writer) error { return WriteSearch(w, x) })
	ask[float64](t, ctx, b, ready)
	focused := ""
	for range 30 {
		if err := b.Type(ctx, "Tab"); err != nil {
			t.Fatal(err)
		}
		if focused = ask[string](t, ctx, b, `document.activeElement.id`); focused == "timeline" {
			break
		}
	}
	if focused != "timeline" {
		t.Fatalf("the tab key does not lead to the timeline, but to %q", focused)
	}
	const press = `(k => { document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: k, bubbles: true, cancelable: true})); const v = placer.view; return [v.from / v.whole, v.to / v.whole, document.getElementById("timeline-said").textContent, placer.panels[0].row]; })`
	type state struct {
		from, to float64
		said     string
		row      int
	}
	do := func(key string) (s state) {
		t.Helper()
		raw := ask[[]json.RawMessage](t, ctx, b, press+"("+jsonOf(t, key)+")")
		for i, to := range []any{&s.from, &s.to, &s.said, &s.row} {
			if err := json.Unmarshal(raw[i], to); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	if s := do("+"); s.to-s.from > 0.7 || s.from < 0.1 {
		t.Errorf("+ shows %+v", s)
	}
	before := do("+")
	if s := do("ArrowRight"); s.from <= before.from {
		t.Errorf("right shows %+v after %+v", s, before)
	}
	if s := do("ArrowLeft"); s.from-before.from > 1e-9 {
		t.Errorf("left shows %+v after %+v", s, before)
	}
	if s := do("ArrowDown"); s.row != 1 || !strings.Contains(s.said, "gpu:1") {
		t.Errorf("down is at %+v", s)
	}
	one := do("]")
	if !strings.Contains(one.said, "gpu:1; layer") && !strings.Contains(one.said, "on gpu:1") {
		t.Errorf("] says %q", one.said)
	}
	if two := do("]"); two.said == one.said {
		t.Errorf("] twice says %q both times", two.said)
	}
	if s := do("Enter"); s.to-s.from > 0.2 {
		t.Errorf("enter shows %+v", s)
	}
	if s := do("0"); s.from != 0 || s.to != 1 {
		t.Errorf("0 shows %+v", s)
	}
	quiet(t, b, address)
}

// TestPicture: the timeline looks as it did, but for text, whose fonts are the host's:
// at most one pixel in a hundred differs by more than a shade.
func TestPicture(t *testing.T) {
	x := expert(t, "rnnlm:layers=2,unroll=3", 2)
	ctx, b, address := open(t, 1280, 900, func(w io.Writer) error { return WriteSearch(w, x) })
	ask[float64](t, ctx, b, ready)
	for _, scheme := range []string{"light", "dark"} {
		if err := b.Media(ctx, "screen", scheme); err != nil {
			t.Fatal(err)
		}
		ask[bool](t, ctx, b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
		box := ask[[]float64](t, ctx, b, `(r => [r.left + 148, r.top + scrollY + 22, r.width - 160, r.height - 24])(document.querySelector(".timeline").getBoundingClientRect())`)
		got, err := b.Picture(ctx, box[0], box[1], box[2], box[3])
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", "timeline-"+scheme+".png")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		share := differing(t, got, want)
		t.Logf("%s: %.3f%% of pixels differ", scheme, 100*share)
		if share > 0.01 {
			t.Errorf("%s: %.1f%% of pixels differ; if that is as it should be, go test ./internal/report/web -run Picture -update", scheme, 100*share)
		}
	}
	quiet(t, b, address)
}

// differing returns the share of pixels of two pictures that differ by more than 24 of
// 255 in some colour; 1 for pictures of other sizes.
func differing(t *testing.T, a, b []byte) float64 {
	t.Helper()
	decode := func(text []byte) image.Image {
		x, err := png.Decode(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x, y := decode(a), decode(b)
	if x.Bounds() != y.Bounds() {
		t.Errorf("pictures of %v and %v", x.Bounds(), y.Bounds())
		return 1
	}
	n := 0
	box := x.Bounds()
	for j := box.Min.Y; j < box.Max.Y; j++ {
		for i := box.Min.X; i < box.Max.X; i++ {
			r0, g0, b0, _ := x.At(i, j).RGBA()
			r1, g1, b1, _ := y.At(i, j).RGBA()
			far := func(p, q uint32) bool { return max(p, q)-min(p, q) > 24<<8 }
			if far(r0, r1) || far(g0, g1) || far(b0, b1) {
				n++
			}
		}
	}
	return float64(n) / float64(box.Dx()*box.Dy())
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
