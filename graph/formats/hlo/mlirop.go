package hlo

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"placer/graph/formats/foreign"
)

// operation reads one operation; done says that it is the region's return.
func (p *mlir) operation(c *computation, known *values, op string, depth int) (done bool, err error) {
	names, op, err := cutResults(op)
	if err != nil {
		return false, err
	}
	x := &instruction{id: p.count}
	results := 0
	for _, n := range names {
		results += n.count
	}
	if results > 0 {
		x.name = names[0].name
		p.count++
	}
	head, regions := cutRegions(op)
	end := strings.IndexAny(head, " (<\t\n")
	if end < 0 {
		end = len(head)
	}
	name := strings.Trim(head[:end], `"`)
	fail := func(format string, a ...any) (bool, error) {
		at := foreign.Brief(name)
		if x.name != "" {
			at += " " + foreign.Brief("%"+x.name)
		}
		return false, fmt.Errorf("%s: %s", at, fmt.Sprintf(format, a...))
	}
	if strings.HasPrefix(name, "cf.") || strings.HasPrefix(name, "scf.") {
		return fail("branches between blocks are not read, as nothing says how often each runs")
	}
	if strings.HasPrefix(name, "torch.") {
		return fail("is of MLIR's torch dialect, want StableHLO")
	}
	body, sig := cutSignature(head)
	x.attr.scope = p.locs.of(strings.TrimSpace(head))
	var own []string // parameters of the region, which the head lists
	if name == "sdy.manual_computation" {
		if at := strings.Index(body, "(%"); at >= 0 {
			if second := strings.LastIndex(body, "(%"); second > at {
				own, body = []string{parenthesised(body, second)}, body[:second]
			}
		}
	}
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
	case "return", "func.return", "stablehlo.return", "mhlo.return", "sdy.return":
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
		} else {
			for _, list := range append(own, reducerParameters(head)...) {
				if err := p.parameters(inner, at, list); err != nil {
					return fail("%v", err)
				}
			}
		}
		if err := p.body(inner, at, r, depth+1); err != nil {
			return fail("%v", err)
		}
		x.called = append(x.called, inner)
		p.m.comps = append(p.m.comps, inner)
		x.captured = append(x.captured, inner.captures()...)
	}
	if x.opcode == "call" && len(regions) == 0 {
		named := funcName
		if strings.HasSuffix(name, ".composite") {
			named = calledName
		}
		if found := named.FindStringSubmatch(body); found != nil {
			p.calls = append(p.calls, pendingCall{x, strings.Trim(found[1], `"`)})
		}
	}
	c.list = append(c.list, x)
	known.of[x.name] = x
	if len(names) > 1 {
		p.name(c, known, x, names)
	}
	return false, nil
}

// result is a name on the left of an operation, and how many results it stands for.
type result struct {
	name  string
	count int
}

// cutResults cuts "%0 = ", "%1:3 = " or "%values, %indices = " off an operation.
func cutResults(op string) (names []result, rest string, err error) {
	found := resultNames.FindStringSubmatch(op)
	if found == nil {
		return nil, op, nil
	}
	all := 0
	for _, one := range strings.Split(found[1], ",") {
		name, count, several := strings.Cut(strings.TrimPrefix(strings.TrimSpace(one), "%"), ":")
		n := 1
		if several {
			if n, err = strconv.Atoi(count); err != nil || n < 1 || n > 1<<16 {
				return nil, "", fmt.Errorf("%q has no results, or too many", foreign.Brief(op))
			}
		}
		if all += n; all > 1<<16 {
			return nil, "", fmt.Errorf("%q has too many results", foreign.Brief(op))
		}
		names = append(names, result{name, n})
	}
	return names, op[len(found[0]):], nil
}

// name gives the results of x, a tuple, to the names on its left.
func (p *mlir) name(c *computation, known *values, x *instruction, names []result) {
	at := 0
	for _, n := range names {
		all := &instruction{name: n.name, opcode: "tuple", shape: shape{is: true}, id: -1}
		for range n.count {
			part := &instruction{name: n.name, opcode: "get-tuple-element", shape: x.shape.tuple[at], operands: []*instruction{x}, attr: attributes{index: int64(at)}, id: -1}
			c.list = append(c.list, part)
			all.operands, all.shape.tuple = append(all.operands, part), append(all.shape.tuple, part.shape)
			at++
		}
		if n.count == 1 {
			all = all.operands[0]
		} else {
			c.list = append(c.list, all)
		}
		known.of[n.name] = all
	}
}

// parenthesised returns what is within the bracket at i; nothing where it is not closed.
func parenthesised(text string, i int) string {
	if end := closing(text, i); end >= 0 {
		return text[i+1 : end]
	}
	return ""
}

// reducerParameters returns the lists of a reduction's parameters, one for each operand:
// "reducer(%a: type, %b: type) (%c: type, %d: type)".
func reducerParameters(head string) (lists []string) {
	_, rest, ok := strings.Cut(head, "reducer(")
	for rest = "(" + rest; ok && strings.HasPrefix(rest, "(%"); {
		end := closing(rest, 0)
		if end < 0 {
			break
		}
		lists, rest = append(lists, rest[1:end]), strings.TrimLeft(rest[end+1:], " \t\n")
	}
	return lists
}

var (
	whileVariable = regexp.MustCompile(`%([\w.$-]+)\s*=\s*%`)
	whileBinding  = regexp.MustCompile(`%[\w.$-]+\s*=\s*%`)
	reducerHead   = regexp.MustCompile(`(?s)reducer\(.*`)
)

// withoutBindings returns the head of an operation without names that it defines.
func withoutBindings(head string) string {
	return reducerHead.ReplaceAllString(whileBinding.ReplaceAllString(head, "%"), "")
}

var (
	pairOfDims  = regexp.MustCompile(`(contracting_dims|batching_dims)\s*=\s*\[([^\]]*)\]\s*x`)
	dotNumbers  = regexp.MustCompile(`(lhs_contracting_dimensions|lhs_batching_dimensions)\s*=\s*\[([^\]]*)\]`)
	kernelDims  = regexp.MustCompile(`\]\s*x\s*\[([^\]]*)\]\s*->`)
	spreadBy    = regexp.MustCompile(`lhs_dilat(?:e|ion)\s*=\s*(?:array<i64:|dense<)?\s*\[?([\d, ]+)`)
	groupsCount = regexp.MustCompile(`feature_group_count\s*=\s*(\d+)`)
	comparison  = regexp.MustCompile(`(?:^|[\s#])(?:stablehlo<comparison_direction )?(LT|LE|GT|GE|EQ|NE)\b`)
	denseScalar = regexp.MustCompile(`dense<(-?\d+)>`)
	callTarget  = regexp.MustCompile(`@([\w.$-]+)`)

	backendConfig = regexp.MustCompile(`backend_config\s*=\s*"((?:[^"\\]|\\.)*)"`)
	hexEscape     = regexp.MustCompile(`\\[0-9A-Fa-f]{2}`)
	raggedNumbers = regexp.MustCompile(`(\w+)_dimensions\s*=\s*\[([^\]]*)\]`)
	calledName    = regexp.MustCompile(`decomposition\s*=\s*@("[^"]*"|[\w.$-]+)`)

	fourierLengths = regexp.MustCompile(`length\s*=\s*(?:array<i64:)?\s*\[?([\d, ]+)`)
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
	case name == "sdy.manual_computation": // of shard_map and pmap: what one device does
		x.opcode = "call"
		p.m.sharded = true
	case short == "composite": // a name for what its decomposition does
		x.opcode = "call"
	case short == "top-k":
		x.opcode = "topk"
	case short == "optimization-barrier":
		x.opcode = "opt-barrier"
	case short == "ragged-dot":
		x.opcode = short
		for _, list := range raggedNumbers.FindAllStringSubmatch(body, -1) {
			switch dims := numbers(list[2]); list[1] {
			case "lhs_contracting":
				x.attr.contracting = dims
			case "lhs_batching":
				x.attr.batch = dims
			case "rhs_contracting":
				x.attr.rightContracting = dims
			case "rhs_batching":
				x.attr.rightBatch = dims
			case "rhs_group":
				x.attr.groupDims = dims
			}
		}
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
		if found := spreadBy.FindStringSubmatch(body); found != nil {
			x.attr.spread = spreadOf(found[1])
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
		if found := backendConfig.FindStringSubmatch(body); found != nil {
			x.attr.config = hexEscape.ReplaceAllStringFunc(found[1], func(e string) string {
				n, _ := strconv.ParseUint(e[1:], 16, 8)
				return string([]byte{byte(n)})
			})
		}
	case short == "fft":
		x.opcode = short
		if found := fourierLengths.FindStringSubmatch(body); found != nil {
			x.attr.lengths = numbers(found[1])
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

var (
	resultNames = regexp.MustCompile(`^(%[\w.$-]+(?::\d+)?(?:\s*,\s*%[\w.$-]+(?::\d+)?)*)\s*=\s*`)
	operandName = regexp.MustCompile(`%([\w.$-]+)(?:#(\d+))?`)
	intList     = regexp.MustCompile(`-?\d+`)
)
