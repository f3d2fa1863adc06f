package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"placer/internal/faults"
	"placer/internal/fsx"
	"placer/internal/jsonx"
	"placer/placer/corpus/families"
)

// FileName is the name of a corpus in its folder.
const FileName = "corpus.jsonl"

// Format is the value of "format" in its first line.
const Format = "placer corpus 1"

// maxFile bounds the file.
const maxFile = 1 << 30

// Config says how a corpus is made. It is the first line of the file; a corpus goes on
// only under the configuration that it began with.
type Config struct {
	Format string `json:"format"`
	Seed   uint64 `json:"seed"`
	// Seconds of processor time that the search of a label takes at least, or Evaluations,
	// of which one is 0. By Evaluations the file depends on the seed alone.
	Seconds     float64 `json:"cpu_seconds"`
	Evaluations int     `json:"evaluations"`
}

// Default is 20 CPU seconds a problem.
func Default() Config { return Config{Format: Format, Seed: 1, Seconds: 20} }

// Validate reports every fault.
func (c Config) Validate() error {
	var errs faults.List
	errs.If(c.Format != Format, "format is %q, want %q", c.Format, Format)
	errs.If(!(c.Seconds >= 0) || c.Seconds > 1e6 || c.Evaluations < 0 || (c.Seconds > 0) == (c.Evaluations > 0), "%g CPU seconds and %d evaluations a label, want one above 0 and the other 0", c.Seconds, c.Evaluations)
	return errors.Join(errs...)
}

// Corpus is what a file holds.
type Corpus struct {
	Config
	Problems []Problem // by index
}

// Read reads the corpus of a folder. What a kill left half written is left out.
func Read(folder string) (*Corpus, error) {
	path := filepath.Join(folder, FileName)
	data, err := fsx.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	c, err := Parse(data, path)
	if err == nil && len(c.Problems) == 0 {
		err = fmt.Errorf("%s: no problems", path)
	}
	return c, err
}

// Parse reads the file data; name is the file's for errors.
func Parse(data []byte, name string) (*Corpus, error) {
	var r reader
	line := 0
	for start := 0; start < len(data); {
		end := bytes.IndexByte(data[start:], '\n')
		if end < 0 {
			break
		}
		line++
		if end > 0 {
			if err := r.line(data[start : start+end]); err != nil {
				return nil, fmt.Errorf("%s: line %d: %w", name, line, err)
			}
		}
		start += end + 1
	}
	if !r.begun {
		return nil, fmt.Errorf("%s: no first line", name)
	}
	return r.corpus(), nil
}

// reader reads the lines of a file.
type reader struct {
	Corpus
	begun bool
	at    map[int]bool
}

// line reads the next one.
func (r *reader) line(data []byte) error {
	if !r.begun {
		if err := jsonx.Decode(data, &r.Config); err != nil {
			return err
		}
		r.begun, r.at = true, map[int]bool{}
		return r.Config.Validate()
	}
	var x Problem
	if err := jsonx.Decode(data, &x); err != nil {
		return err
	}
	if err := x.Validate(); err != nil {
		return err
	}
	if r.at[x.Index] {
		return fmt.Errorf("problem %d occurs twice", x.Index)
	}
	r.at[x.Index] = true
	r.Problems = append(r.Problems, x)
	return nil
}

// corpus returns what was read, by index.
func (r *reader) corpus() *Corpus {
	slices.SortFunc(r.Problems, func(a, b Problem) int { return a.Index - b.Index })
	return &r.Corpus
}

// Bytes returns the file of c.
func (c *Corpus) Bytes() ([]byte, error) {
	data, err := json.Marshal(c.Config)
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	for i := range c.Problems {
		x, err := json.Marshal(&c.Problems[i])
		if err != nil {
			return nil, err
		}
		data = append(append(data, x...), '\n')
	}
	return data, nil
}

// Select returns the first most problems of c, all for 0, whose plans fit: of the families
// named, or of all for none, but for those held out and their kin. Families take turns in
// a corpus, so the first few are of many.
func (c *Corpus) Select(names, heldOut []string, most int) ([]Problem, error) {
	if err := families.Known(slices.Concat(names, heldOut)); err != nil {
		return nil, err
	}
	var some []Problem
	for _, x := range c.Problems {
		if most > 0 && len(some) == most {
			break
		}
		if x.Fits() && !x.Out(heldOut) && (len(names) == 0 || slices.Contains(names, x.Families[0])) {
			some = append(some, x)
		}
	}
	if len(some) == 0 || len(some) < most {
		return nil, fmt.Errorf("the corpus has %d problems of these families whose plans fit, want %d", len(some), max(most, 1))
	}
	return some, nil
}

// Fingerprint returns what tells lists of problems and labels apart; empty for none.
// Problems are apart by what they are made of: the same graph on another machine is
// another. It panics if one is not valid.
func Fingerprint(problems []Problem) string {
	if len(problems) == 0 {
		return ""
	}
	h := sha256.New()
	e := json.NewEncoder(h)
	for i := range problems {
		x := &problems[i]
		if err := e.Encode([]any{x.Index, x.Graph, x.Net, x.Machine, x.Tasks, x.Plan}); err != nil {
			panic(fmt.Sprintf("corpus: fingerprint: %v", err)) // of a problem that is not valid
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
