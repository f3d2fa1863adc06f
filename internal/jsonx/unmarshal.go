package jsonx

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Unmarshal reads the one document in data into the variable that v points to.
// Keys are the names in the fields' tags, as for encoding/json; what the document
// leaves out stays as it is. Strings, truth values, numbers, slices, maps from
// strings, structs and pointers to these are read, any other type panics.
func Unmarshal(data []byte, v any) error {
	r := New(data)
	if err := r.value(reflect.ValueOf(v).Elem()); err != nil {
		return err
	}
	return r.End()
}

func (r *Reader) value(v reflect.Value) (err error) {
	switch t := v.Type(); t.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(t.Elem()))
		}
		return r.value(v.Elem())
	case reflect.Struct:
		keys, fields := fieldsOf(v, nil, nil)
		return r.Object(keys, 0, func(k int) error { return r.value(fields[k]) })
	case reflect.Slice:
		v.SetLen(0)
		return r.Array(func(int) error {
			v.Set(reflect.Append(v, reflect.Zero(t.Elem())))
			return r.value(v.Index(v.Len() - 1))
		})
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		return r.Members(func(at int, key string) error {
			name := reflect.ValueOf(key)
			if v.MapIndex(name).IsValid() {
				return r.ErrorAt(at, "key %q occurs twice", key)
			}
			x := reflect.New(t.Elem()).Elem()
			err := r.value(x)
			v.SetMapIndex(name, x)
			return err
		})
	case reflect.String:
		var x string
		x, err = r.String()
		v.SetString(x)
	case reflect.Bool:
		var x bool
		x, err = r.Bool()
		v.SetBool(x)
	case reflect.Int, reflect.Int64:
		var x int64
		x, err = r.Int(math.MinInt64, math.MaxInt64)
		v.SetInt(x)
	case reflect.Uint64:
		r.space()
		at := r.at
		text, _, err := r.number("a whole number")
		if err != nil {
			return err
		}
		x, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil {
			return r.ErrorAt(at, "%.40s, want a whole number, 0 to %d", text, uint64(math.MaxUint64))
		}
		v.SetUint(x)
	case reflect.Float64:
		var x float64
		x, err = r.Float()
		v.SetFloat(x)
	default:
		panic(fmt.Sprintf("jsonx: cannot read a %v", t))
	}
	return err
}

// fieldsOf appends the keys and fields of the struct v and of those in it that have
// no name of their own.
func fieldsOf(v reflect.Value, keys []string, fields []reflect.Value) ([]string, []reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			keys, fields = fieldsOf(v.Field(i), keys, fields)
		case name != "" && name != "-":
			keys, fields = append(keys, name), append(fields, v.Field(i))
		}
	}
	return keys, fields
}
