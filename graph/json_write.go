package graph

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"placer/internal/jsonx"
)

// Write writes the graph in its JSON form, one op a line. It returns an error
// where a name is not UTF-8 or has control characters.
func (g *Graph) Write(w io.Writer) error {
	for i := range g.ops {
		if o := &g.ops[i]; !OneLine(o.Name) || !OneLine(string(o.Kind)) || !OneLine(o.Module) {
			return fmt.Errorf("graph %s: op %d: name %q, kind %q or module %q has control characters", g.name, i, o.Name, o.Kind, o.Module)
		}
	}
	if !OneLine(g.name) {
		return fmt.Errorf("graph name %q has control characters", g.name)
	}
	bw := bufio.NewWriterSize(w, 1<<16)
	line, err := jsonx.AppendString(nil, g.name)
	if err != nil {
		return fmt.Errorf("graph name: %w", err)
	}
	fmt.Fprintf(bw, "{\"format\": %q,\n\"name\": %s,\n\"ops\": [\n", Format, line)
	for i := range g.ops {
		line, err = g.appendOp(line[:0], OpID(i))
		if err != nil {
			return fmt.Errorf("graph %s: op %d: %w", g.name, i, err)
		}
		if i+1 < len(g.ops) {
			line = append(line, ',')
		}
		line = append(line, '\n')
		if _, err := bw.Write(line); err != nil {
			return err
		}
	}
	bw.WriteString("]}\n")
	return bw.Flush()
}

// appendOp appends op i as one line. Fields at their zero value are left out,
// except bytes, whose absence means that Build computes them.
func (g *Graph) appendOp(b []byte, i OpID) ([]byte, error) {
	var err error
	str := func(key, s string) {
		b = append(b, key...)
		if err == nil {
			b2, e := jsonx.AppendString(b, s)
			if err = e; e == nil {
				b = b2
			}
		}
	}
	num := func(key string, x int64) {
		if x != 0 {
			b = strconv.AppendInt(append(b, key...), x, 10)
		}
	}
	list := func(key string, n int, at func(k int) string) {
		if n == 0 {
			return
		}
		b = append(b, key...)
		for k := range n {
			str([]string{", ", "["}[btoi(k == 0)], at(k))
		}
		b = append(b, ']')
	}
	o := &g.ops[i]
	str(`{"name": `, o.Name)
	str(`, "kind": `, string(o.Kind))
	if o.Phase != Forward {
		str(`, "phase": `, o.Phase.String())
	}
	if o.DType != F32 {
		str(`, "dtype": `, o.DType.String())
	}
	if o.Precise {
		b = append(b, `, "precise": true`...)
	}
	if o.FLOPs != 0 {
		b = strconv.AppendFloat(append(b, `, "flops": `...), float64(o.FLOPs), 'g', -1, 64)
	}
	if m := o.GEMM; !m.IsZero() {
		b = fmt.Appendf(b, `, "gemm": [%d, %d, %d, %d]`, m.Batch, m.M, m.N, m.K)
	}
	if o.Repeats > 1 {
		num(`, "repeats": `, o.Repeats)
	}
	if o.Kernels > 1 {
		num(`, "kernels": `, o.Kernels)
	}
	b = strconv.AppendInt(append(b, `, "bytes": `...), int64(o.Bytes), 10)
	num(`, "resident": `, int64(o.Resident))
	num(`, "params": `, o.Params)
	num(`, "workspace": `, int64(o.Workspace))
	num(`, "layer": `, int64(o.Layer))
	num(`, "group": `, int64(o.Group))
	if o.Forward != None {
		str(`, "forward": `, g.ops[o.Forward].Name)
	}
	if o.Module != "" {
		str(`, "module": `, o.Module)
	}
	in, control := g.Inputs(i), g.Control(i)
	list(`, "in": `, len(in), func(k int) string {
		p := g.tensors[in[k]].Producer
		return joinRef(g.ops[p].Name, int(in[k])-int(g.outAt[p]))
	})
	list(`, "control": `, len(control), func(k int) string { return g.ops[control[k]].Name })
	if err != nil {
		return nil, err
	}
	if first, end := g.Outputs(i); end > first {
		b = append(b, `, "out": `...)
		for t := first; t < end; t++ {
			b = append(b, []string{", ", "["}[btoi(t == first)]...)
			if b, err = g.appendTensor(b, t); err != nil {
				return nil, fmt.Errorf("output %d: %w", t-first, err)
			}
		}
		b = append(b, ']')
	}
	return append(b, '}'), nil
}

// appendTensor appends tensor t. The element type is left out where it is the
// op's, the bytes where the shape gives them.
func (g *Graph) appendTensor(b []byte, t TensorID) ([]byte, error) {
	x := &g.tensors[t]
	b = append(b, '{')
	start := len(b)
	key := func(s string) {
		if len(b) > start {
			b = append(b, ", "...)
		}
		b = append(b, s...)
	}
	if x.DType != g.ops[x.Producer].DType {
		key(`"dtype": "`)
		b = append(append(b, x.DType.String()...), '"')
	}
	n, err := x.Shape.Elements()
	if err != nil {
		return nil, err
	}
	if x.Shape != nil {
		key(`"shape": [`)
		for k, d := range x.Shape {
			if k > 0 {
				b = append(b, ", "...)
			}
			b = strconv.AppendInt(b, d, 10)
		}
		b = append(b, ']')
	}
	if x.Shape == nil || int64(x.Bytes) != n*x.DType.Size() {
		key(`"bytes": `)
		b = strconv.AppendInt(b, int64(x.Bytes), 10)
	}
	if x.Resident {
		key(`"resident": true`)
	}
	return append(b, '}'), nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// joinRef is the inverse of splitRef; it leaves out slot 0 where it can.
func joinRef(name string, slot int) string {
	if slot == 0 {
		if back, zero := splitRef(name); back == name && zero == 0 {
			return name
		}
	}
	return name + ":" + strconv.Itoa(slot)
}
