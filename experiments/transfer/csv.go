package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"

	"placer/internal/fsx"
)

// readCSV returns the lines of a file, none where there is no file. A column belongs to
// the field of T with its name as tag; fields whose column is missing are left 0.
func readCSV[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	all := make([]T, len(lines)-1)
	for i, line := range lines[1:] {
		names, values := fields(&all[i])
		for k, name := range names {
			at := slices.Index(lines[0], name)
			if at < 0 {
				continue
			}
			if s, ok := values[k].(*string); ok {
				*s = line[at]
			} else if _, err := fmt.Sscan(line[at], values[k]); err != nil {
				return nil, fmt.Errorf("%s: line %d: %s %q: %w", path, i+2, name, line[at], err)
			}
		}
	}
	return all, nil
}

// writeCSV writes a file that readCSV reads.
func writeCSV[T any](path string, all []T) error {
	names, _ := fields(new(T))
	lines := [][]string{names}
	for i := range all {
		var line []string
		_, values := fields(&all[i])
		for _, v := range values {
			if x, ok := v.(*float64); ok {
				line = append(line, figure(*x))
			} else {
				line = append(line, fmt.Sprint(reflect.ValueOf(v).Elem()))
			}
		}
		lines = append(lines, line)
	}
	return fsx.WriteFile(path, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(lines) })
}

// fields returns the tags of x's fields and pointers to them.
func fields[T any](x *T) (names []string, values []any) {
	v := reflect.ValueOf(x).Elem()
	for i := range v.NumField() {
		names, values = append(names, v.Type().Field(i).Tag.Get("csv")), append(values, v.Field(i).Addr().Interface())
	}
	return names, values
}

// figure is x as files have it.
func figure(x float64) string { return fmt.Sprintf("%.6g", x) }
