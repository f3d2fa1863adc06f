package hlo

import (
	"bytes"
	"fmt"
	"strings"

	"placer/graph/formats/foreign"
)

// withoutComments returns text without /*...*/.
func withoutComments(text []byte) []byte {
	for {
		i := bytes.Index(text, []byte("/*"))
		if i < 0 {
			return text
		}
		j := bytes.Index(text[i:], []byte("*/"))
		if j < 0 {
			return text[:i]
		}
		text = append(append([]byte{}, text[:i]...), text[i+j+2:]...)
	}
}

// keyed is one attribute.
type keyed struct{ key, value string }

// attributes reads ", key=value" as often as it stands there.
func (p *parser) attributes() (list []keyed, err error) {
	for {
		for p.at < len(p.data) && (p.data[p.at] == ' ' || p.data[p.at] == '\t') {
			p.at++
		}
		if p.at >= len(p.data) || p.data[p.at] != ',' {
			return list, nil
		}
		p.at++
		p.space()
		start := p.at
		for p.at < len(p.data) && p.data[p.at] != '=' && p.data[p.at] != '\n' {
			p.at++
		}
		key := strings.TrimSpace(string(p.data[start:p.at]))
		if p.at >= len(p.data) || p.data[p.at] != '=' {
			return nil, fmt.Errorf("attribute %q has no value", foreign.Brief(key))
		}
		p.at++
		start = p.at
		for p.at < len(p.data) && p.data[p.at] != ',' && p.data[p.at] != '\n' && p.data[p.at] != '\r' {
			switch p.data[p.at] {
			case '{', '(', '[':
				if _, err := p.balanced(); err != nil {
					return nil, err
				}
			case '"':
				if err := p.quoted(); err != nil {
					return nil, err
				}
			default:
				p.at++
			}
		}
		list = append(list, keyed{key, strings.TrimSpace(string(p.data[start:p.at]))})
	}
}

// balanced moves behind the bracket that closes the one here, and returns what is
// between them.
func (p *parser) balanced() ([]byte, error) {
	start, depth := p.at+1, 0
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			if depth--; depth == 0 {
				p.at++
				return p.data[start : p.at-1], nil
			}
		case '"':
			if err := p.quoted(); err != nil {
				return nil, err
			}
			continue
		}
		p.at++
	}
	return nil, fmt.Errorf("a bracket is not closed")
}

// quoted moves behind the string that begins here.
func (p *parser) quoted() error {
	for p.at++; p.at < len(p.data); p.at++ {
		switch p.data[p.at] {
		case '\\':
			p.at++
		case '"':
			p.at++
			return nil
		}
	}
	return fmt.Errorf("a string is not closed")
}

// space skips white space and comments.
func (p *parser) space() {
	for p.at < len(p.data) {
		rest := p.data[p.at:]
		switch {
		case rest[0] == ' ' || rest[0] == '\n' || rest[0] == '\t' || rest[0] == '\r':
			p.at++
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest, []byte("*/"))
			if end < 0 {
				end = len(rest) - 2
			}
			p.at += end + 2
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.at += end
		default:
			return
		}
	}
}

// word skips s where it stands here as a word of its own.
func (p *parser) word(s string) bool {
	rest := p.data[p.at:]
	if !bytes.HasPrefix(rest, []byte(s)) || len(rest) > len(s) && s != "=" && isName(rest[len(s)]) {
		return false
	}
	p.at += len(s)
	return true
}

func isName(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '.' || b == '-' || b == '/' || b == ':' || b == '#' || b >= 0x80
}

// name reads a name without its percent sign.
func (p *parser) name() string {
	if p.at < len(p.data) && p.data[p.at] == '%' {
		p.at++
	}
	start := p.at
	for p.at < len(p.data) && isName(p.data[p.at]) {
		p.at++
	}
	return string(p.data[start:p.at])
}
