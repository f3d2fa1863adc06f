package joint

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"placer/internal/fsx"
	"placer/nn/safetensors"
	"placer/plan"
)

// Metadata of what Save writes: it has no tensors.
const (
	formatKey   = "format"
	formatValue = "placer.joint.v1"
	spentKey    = "spent"
)

// Save writes how much of the budget is spent.
func (p *Policy) Save(path string) error {
	return fsx.WriteFile(path, func(w io.Writer) error {
		return safetensors.Write(w, &safetensors.File{Metadata: map[string]string{formatKey: formatValue, spentKey: fmt.Sprint(p.spent)}})
	})
}

// Resume makes the Place call to come go on with a run that was cut off when it had
// come to earlier, and whose last Save wrote path: with what was left of exploring, or
// with steps from the earlier plan. It is for budgets in seconds: of what was left of the
// whole. If path cannot be read, which is a note of the outcome, all is explored anew.
func (p *Policy) Resume(earlier *plan.Outcome, path string) { p.earlier, p.path = earlier, path }

// resume takes up what an earlier run came to.
func (t *alternation) resume() {
	o := t.earlier
	if o == nil || !t.whole.DecidedBy(o.Decision) {
		return
	}
	t.best, t.score = t.whole.Complete(o.Decision), o.Score
	if t.path == "" {
		return
	}
	spent, err := load(t.path)
	if err != nil {
		t.notes = append(t.notes, fmt.Sprintf("its training is not taken up, it starts anew: %v", err))
		return
	}
	t.before, t.seconds = spent, t.seconds/(1-spent)
}

// load reads what Save wrote.
func load(path string) (spent float64, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	f, err := safetensors.Read(data)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	spent, err = strconv.ParseFloat(f.Metadata[spentKey], 64)
	if f.Metadata[formatKey] != formatValue || err != nil || !(spent >= 0 && spent < 1) {
		return 0, fmt.Errorf("%s: format %q, %s %q: does not say how far the turns were", path, f.Metadata[formatKey], spentKey, f.Metadata[spentKey])
	}
	return spent, nil
}
