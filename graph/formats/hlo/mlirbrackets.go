package hlo

import (
	"fmt"
	"strings"

	"placer/graph/formats/foreign"
)

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

// endOfString returns the place of the quote that closes the string which opens at i, or
// the text's end or past it.
func endOfString(text string, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// cutOp returns the operation that text begins with, regions and all, and what follows.
func cutOp(text string) (op, rest string, err error) {
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
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
			i = endOfString(op, i)
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
			i = endOfString(text, i)
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

// splitTop splits at the commas outside of brackets, angle brackets and strings.
func splitTop(list string) (parts []string) {
	depth, start := 0, 0
	for i := 0; i < len(list); i++ {
		switch list[i] {
		case '"':
			i = endOfString(list, i)
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
			i = endOfString(head, i)
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
