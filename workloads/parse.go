package workloads

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"placer/graph"
	"placer/graph/train"
)

// Params is a family with its settings.
type Params interface {
	Validate() error
	// Build returns the graph. It validates first.
	Build() (*graph.Graph, error)
	generate(name string) (*graph.Graph, error)
}

// field is a setting of a family in its textual form.
type field struct {
	name string
	set  func(text string) error
}

// family is what Parse knows of one.
type family struct {
	name string
	// config returns the settings to start from, their fields, and the finished
	// Params.
	config func() ([]field, func() Params)
}

// Families returns the names that Parse accepts before the colon.
func Families() []string {
	var names []string
	for _, f := range families() {
		names = append(names, f.name)
	}
	return names
}

// Fields returns the names of a family's settings, nil for an unknown family.
func Fields(name string) []string {
	for _, f := range families() {
		if f.name == name {
			fields, _ := f.config()
			return fieldNames(fields)
		}
	}
	return nil
}

func fieldNames(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return names
}

// Parse reads "family:key=value,key=value"; what is not named keeps the family's
// default, and the colon may be left out when nothing is named. The error names
// the faulty part.
func Parse(text string) (Params, error) {
	name, rest, _ := strings.Cut(text, ":")
	for _, f := range families() {
		if f.name == name {
			p, err := f.parse(rest)
			if err != nil {
				return nil, fmt.Errorf("workload %q: %w", text, err)
			}
			return p, nil
		}
	}
	return nil, fmt.Errorf("workload %q: unknown family %q, %s", text, name, suggest(name, Families()))
}

func (f family) parse(text string) (Params, error) {
	fields, done := f.config()
	seen := map[string]bool{}
	if text != "" {
		for _, part := range strings.Split(text, ",") {
			key, value, ok := strings.Cut(part, "=")
			if !ok {
				return nil, fmt.Errorf("%q is not of the form key=value", part)
			}
			if seen[key] {
				return nil, fmt.Errorf("%s is set twice", key)
			}
			seen[key] = true
			if err := setField(fields, key, value); err != nil {
				return nil, err
			}
		}
	}
	p := done()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

func setField(fields []field, key, value string) error {
	for _, f := range fields {
		if f.name == key {
			if err := f.set(value); err != nil {
				return fmt.Errorf("%s=%s: %w", key, value, err)
			}
			return nil
		}
	}
	return fmt.Errorf("unknown setting %q, %s", key, suggest(key, fieldNames(fields)))
}

var errNotInteger = errors.New("want a whole number")

func intField(name string, to *int) field {
	return field{name, func(text string) error {
		x, err := strconv.Atoi(text)
		if err != nil {
			return errNotInteger
		}
		*to = x
		return nil
	}}
}

func boolField(name string, to *bool) field {
	return field{name, func(text string) error {
		x, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("want true or false")
		}
		*to = x
		return nil
	}}
}

func dtypeField(name string, to *graph.DType) field {
	return field{name, func(text string) (err error) {
		*to, err = graph.ParseDType(text)
		return err
	}}
}

func trainField(c *train.Config) field {
	return field{"optimizer", func(text string) (err error) {
		c.Optimizer, err = train.ParseOptimizer(text)
		return err
	}}
}
