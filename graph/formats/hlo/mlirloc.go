package hlo

import (
	"regexp"
	"strconv"
	"strings"
)

// locations are the names that a text's locations give operations: those of JAX, which
// lower().as_text(debug_info=True) prints, are "jit(step)/jvp(Model)/layer_0/dot_general".
type locations map[string]string // by "#loc12", what is in its parentheses

var locationLine = regexp.MustCompile(`(?m)^(#loc\d*) = loc\((.*)\)$`)

// locationsOf finds the aliases of text.
func locationsOf(text string) locations {
	l := locations{}
	if !strings.Contains(text, "#loc") {
		return l
	}
	for _, found := range locationLine.FindAllStringSubmatch(text, -1) {
		l[found[1]] = found[2]
	}
	return l
}

// of returns the name at the end of an operation or of a parameter: "... loc(#loc12)".
func (l locations) of(text string) string {
	at := strings.LastIndex(text, "loc(")
	if at < 0 || at > 0 && text[at-1] != ' ' {
		return ""
	}
	end := closing(text, at+len("loc"))
	if end < 0 {
		return ""
	}
	return l.name(text[at+len("loc("):end], 0)
}

var (
	quotedName = regexp.MustCompile(`^"((?:[^"\\]|\\.)*)"`)
	typeOnly   = regexp.MustCompile(`^[\w-]*:$`)
)

// name is what is in a location's parentheses: a name, of the name within it where it is an
// operator's type ("add:"); nothing where it is a place in a file or in calls.
func (l locations) name(inside string, depth int) string {
	if depth > maxNesting {
		return ""
	}
	if strings.HasPrefix(inside, "#") {
		return l.name(l[inside], depth+1)
	}
	found := quotedName.FindStringSubmatch(inside)
	if found == nil {
		return ""
	}
	rest := inside[len(found[0]):]
	if strings.HasPrefix(rest, ":") { // "file.py":12:3
		return ""
	}
	if typeOnly.MatchString(found[1]) {
		return l.name(strings.TrimSuffix(strings.TrimPrefix(rest, "("), ")"), depth+1)
	}
	if name, err := strconv.Unquote(found[0]); err == nil {
		return name
	}
	return found[1]
}
