package hlo

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"placer/graph/formats/foreign"
)

// maxNesting bounds how deep tuples, regions and calls are nested.
const maxNesting = 64

// parser reads the text of HLO.
type parser struct {
	data  []byte
	at    int
	elems map[string]elem
	m     *module
	calls []pendingCall
	names map[string]*computation
	count int32
}

// pendingCall is a reference to a computation that may follow.
type pendingCall struct {
	from *instruction
	name string
}

// parseText reads a module's text.
func parseText(data []byte) (*module, error) {
	p := &parser{data: data, elems: elems(), m: newModule(""), names: map[string]*computation{}}
	if err := p.module(); err != nil {
		return nil, fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(p.at, len(data))], []byte("\n")), err)
	}
	return p.m, nil
}

var (
	aliasEntry = regexp.MustCompile(`\{\s*(\d*)[^{}]*\}\s*:\s*\(\s*(\d+)`)
	donorEntry = regexp.MustCompile(`\(\s*(\d+)`)
)

func (p *parser) module() error {
	p.space()
	if !p.word("HloModule") {
		return fmt.Errorf("want HloModule")
	}
	p.space()
	p.m.name = foreign.Clean(p.name())
	attrs, err := p.attributes()
	if err != nil {
		return err
	}
	for _, a := range attrs {
		switch a.key {
		case "input_output_alias":
			for _, found := range aliasEntry.FindAllStringSubmatch(a.value, -1) { // {0}: (3, {}, may-alias)
				result, _ := strconv.ParseInt("0"+found[1], 10, 32) // {} is the one result
				if k, err := strconv.ParseInt(found[2], 10, 32); err == nil {
					p.m.alias(k, result)
				}
			}
		case "buffer_donor": // { (0, {}), (1, {}) }
			for _, found := range donorEntry.FindAllStringSubmatch(a.value, -1) {
				if k, err := strconv.ParseInt(found[1], 10, 32); err == nil {
					p.m.donate(k)
				}
			}
		case "num_partitions":
			p.m.parts, _ = strconv.ParseInt(a.value, 10, 64)
		}
	}
	for p.space(); p.at < len(p.data); p.space() {
		line := p.data[p.at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		if trimmed := bytes.TrimRight(line, " \t\r"); !bytes.HasSuffix(trimmed, []byte("{")) {
			p.at += len(line) // a table of file names and places
			continue
		}
		if err := p.computation(); err != nil {
			return err
		}
	}
	for _, c := range p.calls {
		to := p.names[c.name]
		if to == nil {
			return fmt.Errorf("instruction %s calls %s, which the module does not have", foreign.Brief(c.from.name), foreign.Brief(c.name))
		}
		c.from.called = append(c.from.called, to)
	}
	if p.m.entry == nil {
		if len(p.m.comps) != 1 {
			return fmt.Errorf("the module has no ENTRY computation")
		}
		p.m.entry = p.m.comps[0]
	}
	return nil
}

// computation reads a header and the instructions in its braces.
func (p *parser) computation() error {
	entry := p.word("ENTRY")
	p.space()
	c := &computation{name: p.name()}
	if c.name == "" || p.names[c.name] != nil {
		return fmt.Errorf("computation %q: the name is empty or taken", foreign.Brief(c.name))
	}
	p.names[c.name] = c
	p.m.comps = append(p.m.comps, c)
	if entry {
		if p.m.entry != nil {
			return fmt.Errorf("computation %s is a second ENTRY", foreign.Brief(c.name))
		}
		p.m.entry = c
	}
	end := bytes.IndexByte(p.data[p.at:], '\n') // the signature, which the instructions repeat
	if end < 0 {
		return fmt.Errorf("computation %s has no instructions", foreign.Brief(c.name))
	}
	p.at += end
	locals := map[string]*instruction{}
	var reads [][]string
	for {
		p.space()
		if p.at >= len(p.data) {
			return fmt.Errorf("computation %s: the file ends early", foreign.Brief(c.name))
		}
		if p.data[p.at] == '}' {
			p.at++
			break
		}
		root := p.word("ROOT")
		x, operands, err := p.instruction()
		if err != nil {
			return err
		}
		if locals[x.name] != nil {
			return fmt.Errorf("instruction %s: an earlier one has the same name", foreign.Brief(x.name))
		}
		locals[x.name] = x
		c.list = append(c.list, x)
		reads = append(reads, operands)
		if root {
			c.root = x
		}
	}
	if len(c.list) == 0 {
		return fmt.Errorf("computation %s has no instructions", foreign.Brief(c.name))
	}
	for i, x := range c.list {
		for k, name := range reads[i] {
			control := strings.HasPrefix(name, "\x00")
			from := locals[strings.TrimPrefix(name, "\x00")]
			switch {
			case from == nil:
				return fmt.Errorf("instruction %s: operand %d (%s) is no instruction of %s", foreign.Brief(x.name), k, foreign.Brief(name), foreign.Brief(c.name))
			case control:
				x.control = append(x.control, from)
			default:
				x.operands = append(x.operands, from)
			}
		}
	}
	if c.root == nil {
		c.root = c.list[len(c.list)-1]
	}
	return c.order()
}

// instruction reads "name = shape opcode(operands), key=value, ..." and returns the
// names of the operands; those that it only waits for begin with a zero byte.
func (p *parser) instruction() (*instruction, []string, error) {
	p.space()
	x := &instruction{name: p.name(), id: p.count}
	p.count++
	p.space()
	if x.name == "" || !p.word("=") {
		return nil, nil, fmt.Errorf("want an instruction: name = shape opcode(operands)")
	}
	fail := func(format string, a ...any) (*instruction, []string, error) {
		return nil, nil, fmt.Errorf("instruction %s: %s", foreign.Brief(x.name), fmt.Sprintf(format, a...))
	}
	p.space()
	var err error
	if x.shape, err = p.shape(0); err != nil {
		return fail("%v", err)
	}
	p.space()
	x.opcode = p.name()
	if x.opcode == "" || p.at >= len(p.data) || p.data[p.at] != '(' {
		return fail("want an opcode and operands in parentheses")
	}
	inside, err := p.balanced()
	if err != nil {
		return fail("%v", err)
	}
	var reads []string
	switch x.opcode {
	case "parameter":
		if x.attr.index, err = strconv.ParseInt(string(bytes.TrimSpace(inside)), 10, 32); err != nil || x.attr.index < 0 {
			return fail("parameter number %q", foreign.Brief(string(inside)))
		}
	case "constant":
		if len(inside) < 32 {
			x.attr.literal = string(bytes.TrimSpace(inside))
		}
	case "iota", "replica-id", "partition-id":
	default:
		reads = operandNames(inside)
	}
	attrs, err := p.attributes()
	if err != nil {
		return fail("%v", err)
	}
	for _, a := range attrs {
		switch a.key {
		case "index":
			if x.opcode == "get-tuple-element" {
				if x.attr.index, err = strconv.ParseInt(a.value, 10, 32); err != nil || x.attr.index < 0 {
					return fail("index %q", foreign.Brief(a.value))
				}
			}
		case "lhs_contracting_dims":
			x.attr.contracting = numbers(a.value)
		case "lhs_batch_dims":
			x.attr.batch = numbers(a.value)
		case "rhs_contracting_dims":
			x.attr.rightContracting = numbers(a.value)
		case "rhs_batch_dims":
			x.attr.rightBatch = numbers(a.value)
		case "rhs_group_dims":
			x.attr.groupDims = numbers(a.value)
		case "feature_group_count":
			x.attr.groups, _ = strconv.ParseInt(a.value, 10, 64)
		case "dim_labels":
			x.attr.output = kernelOutput(a.value)
		case "window":
			if _, rest, ok := strings.Cut(a.value, "lhs_dilate="); ok {
				x.attr.spread = spreadOf(strings.TrimRight(strings.Fields(rest + " ")[0], "}"))
			}
		case "fft_length":
			x.attr.lengths = numbers(a.value)
		case "direction":
			x.attr.direction = a.value
		case "custom_call_target":
			x.attr.target = strings.Trim(a.value, `"`)
		case "metadata":
			x.attr.scope = strings.ReplaceAll(quotedAfter(a.value, "op_name="), `\'`, "'")
		case "backend_config":
			x.attr.trips = knownTrips(a.value)
			if x.opcode == "custom-call" {
				x.attr.config = a.value
			}
		case "calls", "to_apply", "body", "condition", "branch_computations", "called_computations", "true_computation", "false_computation":
			for _, name := range strings.Split(strings.Trim(a.value, "{}"), ",") {
				p.calls = append(p.calls, pendingCall{x, strings.TrimPrefix(strings.TrimSpace(name), "%")})
			}
		case "control-predecessors":
			for _, name := range operandNames([]byte(strings.Trim(a.value, "{}"))) {
				reads = append(reads, "\x00"+name)
			}
		}
	}
	return x, reads, nil
}

// operandNames returns the names in a list of operands, each of which may have its
// shape before it.
func operandNames(list []byte) (names []string) {
	depth, start := 0, 0
	add := func(end int) {
		part := bytes.TrimSpace(withoutComments(list[start:end]))
		if i := bytes.LastIndexAny(part, " \t\n"); i >= 0 {
			part = part[i+1:]
		}
		if len(part) > 0 {
			names = append(names, string(bytes.TrimPrefix(part, []byte("%"))))
		}
		start = end + 1
	}
	for i, b := range list {
		switch b {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case ',':
			if depth == 0 {
				add(i)
			}
		}
	}
	if start < len(list) {
		add(len(list))
	}
	return names
}

// shape reads the shape of an array or of a tuple.
func (p *parser) shape(depth int) (s shape, err error) {
	if depth > maxNesting {
		return s, fmt.Errorf("tuples are nested deeper than %d", maxNesting)
	}
	if p.at < len(p.data) && p.data[p.at] == '(' {
		s.is = true
		for p.at++; ; {
			p.space()
			if p.at < len(p.data) && p.data[p.at] == ')' {
				p.at++
				return s, nil
			}
			part, err := p.shape(depth + 1)
			if err != nil {
				return s, err
			}
			s.tuple = append(s.tuple, part)
			if p.space(); p.at < len(p.data) && p.data[p.at] == ',' {
				p.at++
			} else if p.at >= len(p.data) || p.data[p.at] != ')' {
				return s, fmt.Errorf("a tuple's shape is not closed")
			}
		}
	}
	start := p.at
	for p.at < len(p.data) && (p.data[p.at] >= 'a' && p.data[p.at] <= 'z' || p.data[p.at] >= '0' && p.data[p.at] <= '9') {
		p.at++
	}
	e, ok := p.elems[string(p.data[start:p.at])]
	if !ok || p.at >= len(p.data) || p.data[p.at] != '[' {
		return s, fmt.Errorf("want a shape, such as f32[2,3], at %q", foreign.Brief(string(p.data[start:min(len(p.data), start+20)])))
	}
	inside, err := p.balanced()
	if err != nil {
		return s, err
	}
	dims := []int64{}
	if text := string(withoutComments(inside)); strings.TrimSpace(text) != "" {
		for _, d := range strings.Split(text, ",") {
			n, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimSpace(d), "<="), 10, 64)
			if err != nil {
				return s, fmt.Errorf("dimension %q", foreign.Brief(d))
			}
			dims = append(dims, n)
		}
	}
	if p.at < len(p.data) && p.data[p.at] == '{' { // the layout
		if _, err := p.balanced(); err != nil {
			return s, err
		}
	}
	return array(e, dims)
}

// numbers reads "{1,2}".
func numbers(text string) (list []int64) {
	for _, part := range strings.Split(strings.Trim(text, "{}[]"), ",") {
		if n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// kernelOutput returns 1 plus the place of the output features in the kernel's labels,
// as in bf01_oi01->bf01; 0 where there is none.
func kernelOutput(labels string) int {
	_, kernel, _ := strings.Cut(labels, "_")
	kernel, _, _ = strings.Cut(kernel, "->")
	return strings.IndexByte(kernel, 'o') + 1
}

// spreadOf returns the product of the numbers in "2x2" or "2, 2".
func spreadOf(list string) int64 {
	n := int64(1)
	for _, part := range strings.FieldsFunc(list, func(r rune) bool { return r < '0' || r > '9' }) {
		d, err := strconv.ParseInt(part, 10, 32)
		if err != nil || d < 1 || n > 1<<31 {
			return 1
		}
		n *= d
	}
	return n
}

// quotedAfter returns the string that follows key.
func quotedAfter(text, key string) string {
	_, rest, ok := strings.Cut(text, key+`"`)
	if !ok {
		return ""
	}
	s, _, _ := strings.Cut(rest, `"`)
	return s
}

// knownTrips returns the trip count that XLA's passes leave in a loop's configuration.
func knownTrips(config string) int64 {
	_, rest, ok := strings.Cut(config, "known_trip_count")
	if !ok {
		return 0
	}
	at := strings.IndexAny(rest, "0123456789")
	if at < 0 {
		return 0
	}
	n := int64(0)
	for _, b := range []byte(rest[at:min(len(rest), at+15)]) {
		if b < '0' || b > '9' {
			break
		}
		n = 10*n + int64(b-'0')
	}
	return n
}
