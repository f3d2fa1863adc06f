package tensorflow

import (
	"strings"

	nodepb "github.com/wamuir/graft/tensorflow/core/framework/node_def_go_proto"
	varpb "github.com/wamuir/graft/tensorflow/core/framework/variable_go_proto"
	corepb "github.com/wamuir/graft/tensorflow/core/protobuf/for_core_protos_go_proto"
	"google.golang.org/protobuf/proto"
)

// trained reports whether a variable holds parameters that a step trains: as the node
// says (placer_tensorflow's captures do), as the file says of that variable, or by its
// name, which optimizers give to what they keep.
func (imp *importer) trained(n *nodepb.NodeDef) bool {
	if said, ok := n.Attr["_trainable"]; ok {
		return said.GetB()
	}
	name := n.Name
	if shared := string(n.Attr["shared_name"].GetS()); shared != "" {
		name = shared
	}
	bare := name // what savers name anew gets a number
	if i := strings.LastIndex(name, "_"); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		bare = name[:i]
	}
	for _, k := range []string{name, bare} {
		if said, ok := imp.file.trainable[k]; ok {
			return said
		}
	}
	return !isSlot(name)
}

// isSlot reports whether a variable is an optimizer's, by the names that those give.
func isSlot(name string) bool {
	for _, s := range []string{"/Adam", "/Momentum", "/RMSProp", "/Adagrad", "/ExponentialMovingAverage", "beta1_power", "beta2_power", "global_step", "/m", "/v"} {
		if strings.Contains(name, s+"_") || strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// trainableIn returns which variables a MetaGraphDef says to be trained and which not:
// its collections of TensorFlow 1, the objects of a SavedModel.
func trainableIn(meta *corepb.MetaGraphDef) map[string]bool {
	said := map[string]bool{}
	for _, c := range []string{"variables", "trainable_variables"} {
		for _, b := range meta.GetCollectionDef()[c].GetBytesList().GetValue() {
			v := &varpb.VariableDef{}
			if proto.Unmarshal(b, v) == nil {
				name, _, _ := strings.Cut(v.GetVariableName(), ":")
				said[name] = c == "trainable_variables"
			}
		}
	}
	apart := map[string]bool{} // names of variables of both sorts
	for _, o := range meta.GetObjectGraphDef().GetNodes() {
		if v := o.GetVariable(); v != nil && v.GetName() != "" {
			if was, twice := said[v.GetName()]; twice && was != v.GetTrainable() {
				apart[v.GetName()] = true
			}
			said[v.GetName()] = v.GetTrainable()
		}
	}
	for name := range apart {
		delete(said, name)
	}
	return said
}
