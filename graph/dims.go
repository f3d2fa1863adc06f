package graph

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// Dim is a size that a graph file leaves open: a number of samples, a length. Numbers of
// the file may be polynomials in it, such as "512*batch + 4".
type Dim struct {
	Name string
	Size int64 // where the reader gives none
	Min  int64 // the least for which the file holds
}

// Bounds of what a polynomial of a graph file may hold: of any model's they are out of
// reach, and numbers made of them stay short.
const (
	maxDims    = 8
	maxTerms   = 64
	maxFactors = 8
	maxDigits  = 31
)

// isDimName reports whether polynomials can refer to a size by this name: a letter, then
// letters, digits and underscores.
func isDimName(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// expression returns the value of text, a polynomial or the largest of several,
// max(A, B, ...), where the sizes are those of at.
func expression(text string, at map[string]int64) (*big.Int, error) {
	inner, several := strings.CutPrefix(text, "max(")
	if several {
		if inner, several = strings.CutSuffix(inner, ")"); !several {
			return nil, fmt.Errorf("%.40q has no closing bracket", text)
		}
	} else {
		inner = text
	}
	var most *big.Int
	for k, part := range strings.Split(inner, ",") {
		if k > 0 && !several || k == maxTerms {
			return nil, fmt.Errorf("%.40q, want a polynomial or max(A, B)", text)
		}
		x, err := polynomial(part, at)
		if err != nil {
			return nil, err
		}
		if most == nil || x.Cmp(most) > 0 {
			most = x
		}
	}
	return most, nil
}

// polynomial returns the value of text, whole numbers and names of sizes joined by *, + and
// -, where the sizes are those of at.
func polynomial(text string, at map[string]int64) (*big.Int, error) {
	sum, negative := new(big.Int), false
	for n := 1; ; n++ {
		if n > maxTerms {
			return nil, fmt.Errorf("%.40q has more than %d terms", text, maxTerms)
		}
		term, rest, sign := cutTerm(text)
		x, err := product(term, at)
		if err != nil {
			return nil, err
		}
		if negative {
			x.Neg(x)
		}
		if sum.Add(sum, x); sign == 0 {
			return sum, nil
		}
		text, negative = rest, sign == '-'
	}
}

// cutTerm cuts text around its first + or -; sign is 0 where there is none.
func cutTerm(text string) (term, rest string, sign byte) {
	k := strings.IndexAny(text, "+-")
	if k < 0 {
		return text, "", 0
	}
	return text[:k], text[k+1:], text[k]
}

// product returns the value of one term.
func product(term string, at map[string]int64) (*big.Int, error) {
	x := big.NewInt(1)
	for k, f := range strings.Split(term, "*") {
		f = strings.Trim(f, " ")
		y := new(big.Int)
		switch size, ok := at[f]; {
		case k >= maxFactors:
			return nil, fmt.Errorf("%.40q has more than %d factors", term, maxFactors)
		case ok:
			y.SetInt64(size)
		case isNumber(f) && len(f) <= maxDigits:
			y.SetString(f, 10)
		case isDimName(f):
			return nil, fmt.Errorf("no size %q is in the file's dims, which stand before its ops", f)
		default:
			return nil, fmt.Errorf("%.40q, want a whole number or the name of a size of the file's dims", f)
		}
		x.Mul(x, y)
	}
	return x, nil
}

// readDims reads the sizes that the file leaves open, and takes those that the reader gave.
func (f *graphFile) readDims() error {
	if f.ops != nil {
		return f.r.Errorf("dims have to stand before the ops, which refer to them")
	}
	return f.r.Members(func(at int, name string) error {
		switch _, twice := f.sizes[name]; {
		case twice:
			return f.r.ErrorAt(at, "dim %q occurs twice", name)
		case !isDimName(name):
			return f.r.ErrorAt(at, "dim %.40q: want a name of letters, digits and underscores", name)
		case len(f.dims) == maxDims:
			return f.r.ErrorAt(at, "more than %d dims", maxDims)
		}
		d := Dim{Name: name, Min: 1}
		keys := []string{"size", "min"}
		if err := f.r.Object(keys, 1, func(key int) (err error) {
			to := []*int64{&d.Size, &d.Min}[key]
			*to, err = f.r.Int(1, math.MaxInt64)
			return err
		}); err != nil {
			return err
		}
		if d.Size < d.Min {
			return f.r.ErrorAt(at, "dim %s: size %d is below its min, %d", name, d.Size, d.Min)
		}
		size, given := f.given[name]
		if !given {
			size = d.Size
		}
		if size < d.Min {
			return fmt.Errorf("%s=%d: the file holds for %d and more", name, size, d.Min)
		}
		f.dims, f.sizes[name] = append(f.dims, d), size
		return nil
	})
}

// open reads an expression, if one is next: a file with dims has strings where others have
// numbers.
func (f *graphFile) open() (x *big.Int, ok bool, err error) {
	first, at := f.r.Peek()
	if first != '"' || len(f.dims) == 0 {
		return nil, false, nil
	}
	s, err := f.r.String()
	if err != nil {
		return nil, true, err
	}
	if x, err = expression(s, f.sizes); err != nil {
		err = f.r.ErrorAt(at, "%w", err)
	}
	return x, true, err
}

// int reads a whole number between low and high, or an expression that is one.
func (f *graphFile) int(low, high int64) (int64, error) {
	_, at := f.r.Peek()
	x, open, err := f.open()
	switch {
	case err != nil:
		return 0, err
	case !open:
		return f.r.Int(low, high)
	case !x.IsInt64() || x.Int64() < low || x.Int64() > high:
		return 0, f.r.ErrorAt(at, "%s is out of range for %s, want %d to %d", brief(x), f.sizesText(), low, high)
	}
	return x.Int64(), nil
}

// float reads a number, or an expression.
func (f *graphFile) float() (float64, error) {
	x, open, err := f.open()
	if err != nil {
		return 0, err
	}
	if !open {
		return f.r.Float()
	}
	y, _ := new(big.Float).SetInt(x).Float64() // as a whole number of so many digits is read
	return y, nil
}

// brief is x in few digits.
func brief(x *big.Int) string {
	if s := x.String(); len(s) <= 40 {
		return s
	}
	return new(big.Float).SetInt(x).Text('g', 3)
}

// sizesText is the sizes as messages name them: batch=32.
func (f *graphFile) sizesText() string {
	var words []string
	for _, d := range f.dims {
		words = append(words, fmt.Sprintf("%s=%d", d.Name, f.sizes[d.Name]))
	}
	return strings.Join(words, ", ")
}
