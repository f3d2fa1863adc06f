package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"placer/internal/fsx"
	"placer/internal/jsonx"
	"placer/plan"
	"placer/units"
)

// Key names a measurement.
type Key struct {
	Graph    string `json:"graph"`    // hash
	Plan     string `json:"plan"`     // hash of the decisions; see PlanHash
	Machine  string `json:"machine"`  // hash
	Host     string `json:"host"`     // see Host
	Settings string `json:"settings"` // see Settings
}

// PlanHash identifies what d decides.
func PlanHash(d plan.Decision) string {
	h := sha256.New()
	var word [8]byte
	number := func(n int) { binary.LittleEndian.PutUint64(word[:], uint64(n)); h.Write(word[:]) }
	number(len(d.Device))
	h.Write(d.Device)
	number(len(d.Priority))
	for _, p := range d.Priority {
		binary.LittleEndian.PutUint32(word[:4], uint32(p))
		h.Write(word[:4])
	}
	number(len(d.Fusion))
	h.Write(d.Fusion)
	return hex.EncodeToString(h.Sum(nil))
}

// record is a line of a cache's file.
type record struct {
	Key
	StepTime  float64 `json:"step_time_s"`
	Overflow  int64   `json:"overflow_bytes"`   // above 0: it ran out of memory
	Predicted float64 `json:"predicted_step_s"` // for the reader
}

// Cache remembers measurements in a file, a line of JSON each. It serves any
// number of goroutines and one process: another one that opens the file is
// refused.
type Cache struct {
	mu       sync.Mutex
	file     *fsx.Lines
	known    map[Key]plan.Score
	underway map[Key]chan struct{}
}

// OpenCache opens or makes the file path. A last line that was not written to its
// end is dropped.
func OpenCache(path string) (*Cache, error) {
	m := &Cache{known: map[Key]plan.Score{}, underway: map[Key]chan struct{}{}}
	var err error
	if m.file, err = fsx.OpenLines(path, m.read); err != nil {
		return nil, err
	}
	return m, nil
}

// errNoMeasurement is of a line of another kind.
var errNoMeasurement = errors.New("no measurement")

func (m *Cache) read(line []byte) error {
	var r record
	if err := jsonx.Decode(line, &r); err != nil {
		return fmt.Errorf("%w: %w", errNoMeasurement, err)
	}
	if r.Graph == "" || r.Plan == "" || r.Machine == "" || r.Overflow < 0 || r.Overflow == 0 && !(r.StepTime > 0) {
		return errNoMeasurement
	}
	m.known[r.Key] = plan.Score{Value: r.StepTime, Overflow: units.Bytes(r.Overflow)}
	return nil
}

// len returns how many measurements are known.
func (m *Cache) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.known)
}

// Do returns the measurement of key, from memory (known), or from measure, which
// runs once even where several goroutines ask at a time. What measure fails at is
// not remembered. A measurement that cannot be written is returned with an error
// of type *WriteError.
func (m *Cache) Do(ctx context.Context, key Key, predicted float64, measure func() (plan.Score, error)) (s plan.Score, known bool, err error) {
	for {
		m.mu.Lock()
		if s, ok := m.known[key]; ok {
			m.mu.Unlock()
			return s, true, nil
		}
		done, ok := m.underway[key]
		if !ok {
			m.underway[key] = make(chan struct{})
			m.mu.Unlock()
			break
		}
		m.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return plan.Score{}, false, ctx.Err()
		}
	}
	s, err = measure()
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.underway[key])
	delete(m.underway, key)
	if err != nil {
		return s, false, err
	}
	m.known[key] = s
	return s, false, m.write(record{key, s.Value, int64(s.Overflow), predicted})
}

// writeError says that a measurement could not be written.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// write appends a line.
func (m *Cache) write(r record) error {
	line, err := json.Marshal(r)
	if err == nil {
		err = m.file.Add(line)
	}
	if err != nil {
		return &writeError{err}
	}
	return nil
}

// Close closes the file and lets other processes have it.
func (m *Cache) Close() error { return m.file.Close() }
