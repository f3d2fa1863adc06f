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
	locs  locations
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
	p := &mlir{m: newModule("module"), funcs: map[string]*computation{}, elems: elems()}
	text := withoutLineComments(string(data))
	p.locs = locationsOf(text)
	if err := p.top(text, 0); err != nil {
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
		case strings.HasPrefix(op, `"func.func"`):
			return fmt.Errorf("is in MLIR's generic form: print it without print_generic_op_form")
		case strings.HasPrefix(op, "func.func"):
			if err := p.function(head, regions); err != nil {
				return err
			}
		}
	}
	return nil
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
		x := &instruction{name: name, opcode: "parameter", shape: s, attr: attributes{index: int64(len(c.list)), scope: p.locs.of(typ)}, id: -1}
		switch found := aliasingOutput.FindStringSubmatch(typ); {
		case found != nil:
			if k, err := strconv.ParseInt(found[1], 10, 32); err == nil {
				p.m.alias(x.attr.index, k)
			}
		case strings.Contains(typ, "jax.buffer_donor = true"):
			p.m.donate(x.attr.index)
		}
		c.list = append(c.list, x)
		known.of[name] = x
	}
	return nil
}

var aliasingOutput = regexp.MustCompile(`tf\.aliasing_output = (\d+)`)

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
