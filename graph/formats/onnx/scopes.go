package onnx

import "strings"

// scopesKey is the entry of a node's metadata_props under which torch's exporter writes
// where in the model the node comes from: a list of Python, from the model itself to the
// module's path, and the name of the operator behind it.
const scopesKey = "pkg.torch.onnx.name_scopes"

// metadata reads an entry of metadata_props.
func (f field) metadata(n *node) error {
	var key, value string
	err := f.sub.fields("metadata of a node", func(f field) error {
		switch f.num {
		case 1:
			key = f.text()
		case 2:
			value = f.text()
		}
		return nil
	})
	if key == scopesKey {
		n.module = moduleOf(value)
	}
	return err
}

// moduleOf returns the module's path in a list such as [”, 'h', 'h.0', 'add_1']; "" for
// the model itself and for what is no such list.
func moduleOf(scopes string) string {
	inside, ok := strings.CutPrefix(strings.TrimSpace(scopes), "[")
	if inside, ok = strings.CutSuffix(inside, "]"); !ok {
		return ""
	}
	list := strings.Split(inside, ",")
	if len(list) < 2 {
		return ""
	}
	return clean(strings.Trim(strings.TrimSpace(list[len(list)-2]), `'"`))
}
