package sequential

import (
	"bytes"
	"testing"
)

// FuzzRead: a file either is refused or is a policy that is written as it was.
func FuzzRead(f *testing.F) {
	p := policy(f, 2)
	p.Card = Card{Trained: []string{"a"}, Results: []Result{{Workload: "w", Devices: 2, Best: 0.5}}}
	f.Add(bytes.Replace(written(f, p), []byte(`"sha256"`), []byte(`"sha255"`), 1)) // no checksum, which refuses all that is changed
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(data, "f")
		if err != nil {
			return
		}
		text := written(t, p)
		q, err := Read(text, "f")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(written(t, q), text) {
			t.Error("a policy changes on its way through a file")
		}
	})
}

// FuzzReadCheckpoint: a file either is refused or is a checkpoint that can be written, and
// taken up or refused by a run.
func FuzzReadCheckpoint(f *testing.F) {
	c := DefaultPretrain()
	c.Families, c.Policy = []string{"rnnlm"}, Config{Hidden: 2}
	t, err := newPretraining(c, nil)
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := t.checkpoint().Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Replace(b.Bytes(), []byte(`"sha256"`), []byte(`"sha255"`), 1)) // no checksum, which refuses all that is changed
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := ReadCheckpoint(data, "f")
		if err != nil {
			return
		}
		_, _ = newPretraining(c, k)
		if err := k.Write(&bytes.Buffer{}); err != nil {
			t.Error(err)
		}
	})
}

// FuzzReadTuneState: a file either is refused or is a state that is read again.
func FuzzReadTuneState(f *testing.F) {
	f.Add([]byte(`{"format":"` + tuneStateFormat + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ReadTuneState(data, "s")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := s.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadTuneState(b.Bytes(), "s"); err != nil {
			t.Errorf("%v: %s", err, b.Bytes())
		}
	})
}
