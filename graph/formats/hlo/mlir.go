package hlo

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"placer/graph/formats/foreign"
)

// mlir reads the text of StableHLO.
type mlir struct {
	m     *module
	funcs map[string]*computation
	calls []pendingCall
	elems map[string]elem
	count int32
}

// values are the names that are known in a region, and around it.
type values struct {
	of    map[string]*instruction
	outer *values
}

func (v *values) find(name string) *instruction {
	for ; v != nil; v = v.outer {
		if x := v.of[name]; x != nil {
			return x
		}
	}
	return nil
}

// parseMLIR reads the functions of a module; the entry is @main, or else the last public
// function.
func parseMLIR(data []byte) (*module, error) {
	p := &mlir{m: &module{aliased: map[int64]bool{}, name: "module"}, funcs: map[string]*computation{}, elems: elems()}
	if err := p.top(withoutLineComments(string(data)), 0); err != nil {
		return nil, err
	}
	for _, c := range p.calls {
		to := p.funcs[c.name]
		if to == nil {
			return nil, fmt.Errorf("%s calls @%s, which the module does not have", foreign.Brief(c.from.name), foreign.Brief(c.name))
		}
		c.from.called = append(c.from.called, to)
	}
	if p.funcs["main"] != nil {
		p.m.entry = p.funcs["main"]
	}
	if p.m.entry == nil {
		return nil, fmt.Errorf("the module has no public function")
	}
	return p.m, nil
}

// withoutLineComments returns text without what follows // on a line, outside of
// strings.
func withoutLineComments(text string) string {
	if !strings.Contains(text, "//") {
		return text
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\' && i+1 < len(text):
			b.WriteByte(text[i])
			i++
		case text[i] == '"' || quoted && text[i] == '\n':
			quoted = text[i] == '"' && !quoted
		case !quoted && strings.HasPrefix(text[i:], "//"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
			if i == len(text) {
				return b.String()
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// top reads what stands in a module: functions, globals, modules.
func (p *mlir) top(text string, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("modules are nested deeper than %d", maxNesting)
	}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		op, rest, err := cutOp(text)
		if err != nil {
			return err
		}
		text = rest
		switch head, regions := cutRegions(op); {
		case strings.HasPrefix(op, "module"), strings.HasPrefix(op, `"builtin.module"`):
			for _, r := range regions {
				if err := p.top(r, depth+1); err != nil {
					return err
				}
			}
		case strings.HasPrefix(op, "func.func"):
			if err := p.function(head, regions); err != nil {
				return err
			}
		}
	}
	return nil
}

// cutOp returns the operation that text begins with, regions and all, and what follows.
func cutOp(text string) (op, rest string, err error) {
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			if depth--; depth < 0 {
				return "", "", fmt.Errorf("a bracket closes that none opened, in %q", foreign.Brief(text[from:]))
			}
		case '\n':
			if depth > 0 {
				continue
			}
			next := strings.TrimLeft(text[i:], " \t\r\n")
			if strings.HasPrefix(next, "reducer") || strings.HasPrefix(next, "cond {") || strings.HasPrefix(next, "do {") || strings.HasPrefix(next, "attributes") {
				continue
			}
			return text[:i], text[i+1:], nil
		}
	}
	if depth > 0 {
		return "", "", fmt.Errorf("a bracket is not closed, in %q", foreign.Brief(text))
	}
	return text, "", nil
}

// cutRegions returns op without its regions, and those: what is in braces whose opening
// one ends a line, or a label follows.
func cutRegions(op string) (head string, regions []string) {
	var b strings.Builder
	start := 0
	for i := 0; i < len(op); i++ {
		switch op[i] {
		case '"':
			for i++; i < len(op) && op[i] != '"'; i++ {
				if op[i] == '\\' {
					i++
				}
			}
		case '{':
			after := strings.TrimLeft(op[i+1:], " \t\r")
			if !strings.HasPrefix(after, "\n") && !strings.HasPrefix(after, "^") {
				continue
			}
			end := closing(op, i)
			if end < 0 {
				return op, nil
			}
			b.WriteString(op[start:i])
			regions = append(regions, op[i+1:end])
			start, i = end+1, end
		}
	}
	b.WriteString(op[start:])
	return b.String(), regions
}

// closing returns the place of the bracket that closes the one at i; -1 for none.
func closing(text string, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

var funcName = regexp.MustCompile(`@("[^"]*"|[\w.$-]+)`)

// function reads one function.
func (p *mlir) function(head string, regions []string) error {
	at := funcName.FindStringSubmatchIndex(head)
	if at == nil {
		return fmt.Errorf("a function has no name")
	}
	name := strings.Trim(head[at[2]:at[3]], `"`)
	if len(regions) == 0 {
		return nil // a declaration
	}
	if p.funcs[name] != nil {
		return fmt.Errorf("function @%s: an earlier one has the same name", foreign.Brief(name))
	}
	open := strings.IndexByte(head[at[1]:], '(')
	if open < 0 {
		return fmt.Errorf("function @%s has no parameters", foreign.Brief(name))
	}
	end := closing(head, at[1]+open)
	if end < 0 {
		return fmt.Errorf("function @%s: a bracket is not closed", foreign.Brief(name))
	}
	c := &computation{name: name}
	known := &values{of: map[string]*instruction{}}
	if err := p.parameters(c, known, head[at[1]+open+1:end]); err != nil {
		return fmt.Errorf("function @%s: %w", foreign.Brief(name), err)
	}
	if err := p.body(c, known, regions[0], 0); err != nil {
		return fmt.Errorf("function @%s: %w", foreign.Brief(name), err)
	}
	p.funcs[name] = c
	p.m.comps = append(p.m.comps, c)
	if !strings.Contains(head[:at[0]], "private") {
		p.m.entry = c
	}
	return nil
}

// parameters adds those of a list "%a: type, %b: type".
func (p *mlir) parameters(c *computation, known *values, list string) error {
	for _, part := range splitTop(list) {
		name, typ, ok := strings.Cut(part, ":")
		name = strings.TrimPrefix(strings.TrimSpace(name), "%")
		if !ok || name == "" {
			return fmt.Errorf("parameter %q has no type", foreign.Brief(part))
		}
		s, err := p.typ(typ)
		if err != nil {
			return fmt.Errorf("parameter %%%s: %w", foreign.Brief(name), err)
		}
		if i := strings.Index(typ, "tf.aliasing_output"); i >= 0 {
			p.m.aliased[int64(len(c.list))] = true
		}
		x := &instruction{name: name, opcode: "parameter", shape: s, attr: attributes{index: int64(len(c.list))}, id: -1}
		c.list = append(c.list, x)
		known.of[name] = x
	}
	return nil
}

// splitTop splits at the commas outside of brackets, angle brackets and strings.
func splitTop(list string) (parts []string) {
	depth, start := 0, 0
	for i := 0; i < len(list); i++ {
		switch list[i] {
		case '"':
			for i++; i < len(list) && list[i] != '"'; i++ {
				if list[i] == '\\' {
					i++
				}
			}
		case '(', '{', '[', '<':
			depth++
		case ')', '}', ']':
			depth--
		case '>':
			if i == 0 || list[i-1] != '-' {
				depth--
			}
		case ',':
			if depth == 0 {
				parts, start = append(parts, list[start:i]), i+1
			}
		}
	}
	if strings.TrimSpace(list[min(start, len(list)):]) != "" {
		parts = append(parts, list[start:])
	}
	return parts
}

var tensorType = regexp.MustCompile(`tensor<([^<>]*)`)

// typ reads the first tensor type in text; other types have no elements.
func (p *mlir) typ(text string) (shape, error) {
	if strings.Contains(text, "!torch.") {
		return shape{}, fmt.Errorf("its type is of MLIR's torch dialect, want StableHLO")
	}
	found := tensorType.FindStringSubmatch(text)
	if found == nil {
		return array(p.elems["token"], []int64{})
	}
	dims := []int64{}
	body, _, _ := strings.Cut(found[1], ",")
	parts := strings.Split(strings.TrimSpace(body), "x")
	for i, d := range parts {
		if n, err := strconv.ParseInt(d, 10, 64); err == nil {
			dims = append(dims, n)
			continue
		}
		if d == "?" {
			return shape{}, fmt.Errorf("type %q has a dimension without a size", foreign.Brief(found[0]+">"))
		}
		name := strings.ToLower(strings.Join(parts[i:], "x"))
		if name == "complex" { // complex<f32>, complex<f64>
			name = "c64"
			if strings.Contains(text, "complex<f64>") {
				name = "c128"
			}
		}
		e, ok := p.elems[mlirElem(name)]
		if !ok {
			return shape{}, fmt.Errorf("element type %q is unknown", foreign.Brief(name))
		}
		return array(e, dims)
	}
	return shape{}, fmt.Errorf("type %q has no element type", foreign.Brief(found[0]+">"))
}

// mlirElem returns HLO's name of an element type.
func mlirElem(name string) string {
	switch {
	case name == "i1":
		return "pred"
	case name == "index":
		return "s64"
	case strings.HasPrefix(name, "ui"):
		return "u" + name[2:]
	case strings.HasPrefix(name, "si"):
		return "s" + name[2:]
	case strings.HasPrefix(name, "i"):
		return "s" + name[1:]
	}
	return name
}

var (
	resultNames = regexp.MustCompile(`^%([\w.$-]+)(?::(\d+))?\s*=\s*`)
	operandName = regexp.MustCompile(`%([\w.$-]+)(?:#(\d+))?`)
	intList     = regexp.MustCompile(`-?\d+`)
)

// body reads the operations of a region into c.
func (p *mlir) body(c *computation, known *values, text string, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("regions are nested deeper than %d", maxNesting)
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "^") { // ^bb0(%arg2: type, ...):
		open := strings.IndexByte(text, '(')
		colon := strings.IndexByte(text, ':')
		if open >= 0 && open < colon {
			end := closing(text, open)
			if end < 0 {
				return fmt.Errorf("a label's parameters are not closed")
			}
			if err := p.parameters(c, known, text[open+1:end]); err != nil {
				return err
			}
			colon = end + strings.IndexByte(text[end:], ':')
		}
		text = strings.TrimSpace(text[colon+1:])
	}
	for ; text != ""; text = strings.TrimSpace(text) {
		op, rest, err := cutOp(text)
		if err != nil {
			return err
		}
		text = rest
		if strings.HasPrefix(op, "^") {
			return fmt.Errorf("has several blocks (%s): how often they run is not said", foreign.Brief(strings.TrimSpace(op)))
		}
		done, err := p.operation(c, known, op, depth)
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	if c.root == nil {
		return fmt.Errorf("a region has no return")
	}
	return nil
}

// operation reads one operation; done says that it is the region's return.
func (p *mlir) operation(c *computation, known *values, op string, depth int) (done bool, err error) {
	full, results := op, 1
	x := &instruction{id: p.count}
	if found := resultNames.FindStringSubmatch(op); found != nil {
		x.name, op = found[1], op[len(found[0]):]
		if found[2] != "" {
			if results, err = strconv.Atoi(found[2]); err != nil || results > 1<<16 {
				return false, fmt.Errorf("%q has too many results", foreign.Brief(full))
			}
		}
		p.count++
	} else {
		results = 0
	}
	head, regions := cutRegions(op)
	end := strings.IndexAny(head, " (<\t\n")
	if end < 0 {
		end = len(head)
	}
	name := strings.Trim(head[:end], `"`)
	fail := func(format string, a ...any) (bool, error) {
		return false, fmt.Errorf("%s %s: %s", foreign.Brief(name), foreign.Brief("%"+x.name), fmt.Sprintf(format, a...))
	}
	if strings.HasPrefix(name, "cf.") || strings.HasPrefix(name, "scf.") {
		return fail("branches an unknown number of times")
	}
	if strings.HasPrefix(name, "torch.") {
		return fail("is of MLIR's torch dialect, want StableHLO")
	}
	body, sig := cutSignature(head)
	for _, found := range operandName.FindAllStringSubmatch(withoutBindings(body[min(end, len(body)):]), -1) {
		from := known.find(found[1])
		if from == nil {
			return fail("reads %%%s, which nothing before it makes", foreign.Brief(found[1]))
		}
		if from.shape.is && found[2] != "" {
			k, err := strconv.Atoi(found[2])
			if err != nil || k >= len(from.shape.tuple) {
				return fail("reads result %s of %d", foreign.Brief(found[2]), len(from.shape.tuple))
			}
			part := &instruction{name: fmt.Sprintf("%s#%d", from.name, k), opcode: "get-tuple-element", shape: from.shape.tuple[k], operands: []*instruction{from}, attr: attributes{index: int64(k)}, id: -1}
			c.list = append(c.list, part)
			from = part
		}
		x.operands = append(x.operands, from)
	}
	switch name {
	case "return", "func.return", "stablehlo.return", "mhlo.return":
		x.opcode, x.shape, x.id = "tuple", shape{is: true}, -1
		for _, from := range x.operands {
			x.shape.tuple = append(x.shape.tuple, from.shape)
		}
		if len(x.operands) == 1 {
			c.root = x.operands[0]
			return true, nil
		}
		c.list, c.root = append(c.list, x), x
		return true, nil
	}
	if results == 0 {
		return false, nil // asserts, stores
	}
	types := sig
	if _, after, ok := strings.Cut(sig, "->"); ok {
		types = strings.TrimSpace(after)
		if strings.HasPrefix(types, "(") {
			if e := closing(types, 0); e > 0 {
				types = types[1:e]
			}
		}
	}
	list := splitTop(types)
	if len(list) == 0 || len(list) < results {
		return fail("has %d types for %d results", len(list), results)
	}
	if results == 1 {
		if x.shape, err = p.typ(list[len(list)-1]); err != nil {
			return fail("%v", err)
		}
	} else {
		x.shape.is = true
		for _, t := range list[len(list)-results:] {
			part, err := p.typ(t)
			if err != nil {
				return fail("%v", err)
			}
			x.shape.tuple = append(x.shape.tuple, part)
		}
	}
	p.kind(x, name, body)
	for _, r := range regions {
		inner := &computation{name: x.name}
		at := &values{of: map[string]*instruction{}, outer: known}
		if x.opcode == "while" { // the pretty form binds its variables in the head
			for k, found := range whileVariable.FindAllStringSubmatch(body, -1) {
				if k < len(x.operands) {
					v := &instruction{name: found[1], opcode: "parameter", shape: x.operands[k].shape, attr: attributes{index: int64(k)}, id: -1}
					inner.list, at.of[found[1]] = append(inner.list, v), v
				}
			}
		} else if found := reducerParameters.FindStringSubmatch(head); found != nil {
			if err := p.parameters(inner, at, found[1]); err != nil {
				return fail("%v", err)
			}
		}
		if err := p.body(inner, at, r, depth+1); err != nil {
			return fail("%v", err)
		}
		x.called = append(x.called, inner)
		p.m.comps = append(p.m.comps, inner)
		x.captured = append(x.captured, inner.captures()...)
	}
	if x.opcode == "call" {
		if found := funcName.FindStringSubmatch(body); found != nil {
			p.calls = append(p.calls, pendingCall{x, strings.Trim(found[1], `"`)})
		}
	}
	c.list = append(c.list, x)
	known.of[x.name] = x
	return false, nil
}

var (
	whileVariable     = regexp.MustCompile(`%([\w.$-]+)\s*=\s*%`)
	reducerParameters = regexp.MustCompile(`reducer\(((?:%[\w.$-]+: tensor<[^>]*>(?:, )?|\(%[\w.$-]+: tensor<[^>]*>, %[\w.$-]+: tensor<[^>]*>\) ?)*)\)`)
	whileBinding      = regexp.MustCompile(`%[\w.$-]+\s*=\s*%`)
	reducerHead       = regexp.MustCompile(`reducer\(.*`)
)

// withoutBindings returns the head of an operation without names that it defines.
func withoutBindings(head string) string {
	return reducerHead.ReplaceAllString(whileBinding.ReplaceAllString(head, "%"), "")
}

// cutSignature cuts head at its last " : " outside of brackets; the head of a reduction
// has its reducer's parameters after the signature.
func cutSignature(head string) (body, sig string) {
	if i := strings.Index(head, "reducer("); i >= 0 {
		head = head[:i]
	}
	depth, cut := 0, -1
	for i := 0; i < len(head); i++ {
		switch head[i] {
		case '"':
			for i++; i < len(head) && head[i] != '"'; i++ {
				if head[i] == '\\' {
					i++
				}
			}
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case ':':
			if depth == 0 && i > 0 && (head[i-1] == ' ' || head[i-1] == ')') {
				cut = i
			}
		}
	}
	if cut < 0 {
		return head, ""
	}
	sig = strings.TrimSpace(head[cut+1:])
	for _, word := range []string{"\n", " cond", " attributes"} {
		sig, _, _ = strings.Cut(sig, word)
	}
	return head[:cut], sig
}

var (
	pairOfDims  = regexp.MustCompile(`(contracting_dims|batching_dims)\s*=\s*\[([^\]]*)\]\s*x`)
	dotNumbers  = regexp.MustCompile(`(lhs_contracting_dimensions|lhs_batching_dimensions)\s*=\s*\[([^\]]*)\]`)
	kernelDims  = regexp.MustCompile(`\]\s*x\s*\[([^\]]*)\]\s*->`)
	groupsCount = regexp.MustCompile(`feature_group_count\s*=\s*(\d+)`)
	comparison  = regexp.MustCompile(`(?:^|[\s#])(?:stablehlo<comparison_direction )?(LT|LE|GT|GE|EQ|NE)\b`)
	denseScalar = regexp.MustCompile(`dense<(-?\d+)>`)
	callTarget  = regexp.MustCompile(`@([\w.$-]+)`)
)

// kind sets the opcode, by HLO's name, and the attributes that costs depend on.
func (p *mlir) kind(x *instruction, name, body string) {
	_, short, ok := strings.Cut(name, ".")
	if !ok {
		short = name
	}
	switch short = strings.ReplaceAll(short, "_", "-"); {
	case short == "call":
		x.opcode = "call"
	case strings.HasPrefix(name, "util.global"):
		x.opcode = "reshape"
		if len(x.operands) == 0 {
			x.opcode = "global"
		}
	case short == "constant":
		x.opcode = "constant"
		if found := denseScalar.FindStringSubmatch(body); found != nil && x.shape.elements() == 1 {
			x.attr.literal = found[1]
		}
	case short == "dot-general" || short == "dot":
		x.opcode = "dot"
		for _, list := range append(pairOfDims.FindAllStringSubmatch(body, -1), dotNumbers.FindAllStringSubmatch(body, -1)...) {
			var dims []int64
			for _, n := range intList.FindAllString(list[2], -1) {
				d, _ := strconv.ParseInt(n, 10, 64)
				dims = append(dims, d)
			}
			if strings.Contains(list[1], "contracting") {
				x.attr.contracting = dims
			} else {
				x.attr.batch = dims
			}
		}
	case short == "convolution":
		x.opcode = short
		if found := kernelDims.FindStringSubmatch(body); found != nil {
			for i, d := range strings.Split(found[1], ",") {
				if strings.TrimSpace(d) == "o" {
					x.attr.output = i + 1
				}
			}
		}
		if found := groupsCount.FindStringSubmatch(body); found != nil {
			x.attr.groups, _ = strconv.ParseInt(found[1], 10, 64)
		}
	case short == "broadcast-in-dim":
		x.opcode = "broadcast"
	case short == "custom-call":
		x.opcode = short
		if found := callTarget.FindStringSubmatch(body); found != nil {
			x.attr.target = found[1]
		}
	case short == "case" || short == "if":
		x.opcode = "conditional"
	case short == "compare":
		x.opcode = short
		if found := comparison.FindStringSubmatch(body); found != nil {
			x.attr.direction = found[1]
		}
	default:
		x.opcode = short
	}
}

// captures returns what c reads that is not its own.
func (c *computation) captures() (list []*instruction) {
	own := make(map[*instruction]bool, len(c.list))
	for _, x := range c.list {
		own[x] = true
	}
	seen := map[*instruction]bool{}
	for _, x := range c.list {
		for _, reads := range [][]*instruction{x.operands, x.captured} {
			for _, from := range reads {
				if !own[from] && !seen[from] {
					seen[from] = true
					list = append(list, from)
				}
			}
		}
	}
	return list
}

// sniffMLIR reports whether data is MLIR's text with functions.
func sniffMLIR(data []byte) bool {
	head := data[:min(len(data), 1<<20)]
	if !bytes.Contains(head, []byte("func.func")) {
		return false
	}
	text := bytes.TrimSpace([]byte(withoutLineComments(string(head[:min(len(head), 1<<14)]))))
	for _, start := range []string{"module", "func.func", "#", "\"builtin.module\""} {
		if bytes.HasPrefix(text, []byte(start)) {
			return true
		}
	}
	return false
}
