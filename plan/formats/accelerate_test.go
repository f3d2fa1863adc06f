package formats_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/plan/formats"
)

// vision is a step of a vision transformer of n blocks as a captured one is: weights first,
// called as in the model's state_dict. The embeddings hold a class token and positions beside
// their modules, the model itself a scale.
func vision(t testing.TB, n int) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("vision")
	weight := func(module, name string) graph.TensorID {
		path := strings.TrimPrefix(module+"."+name, ".")
		return b.Output(b.Op(graph.Op{Name: path, Module: module, Kind: "VariableV2", Params: 2, Resident: 8, Forward: graph.None}, nil, graph.Tensor{Bytes: 8, Resident: true}), 0)
	}
	const embeddings, projection = "vit.embeddings", "vit.embeddings.patch_embeddings.projection"
	class, position := weight(embeddings, "cls_token"), weight(embeddings, "position_embeddings")
	modules := []string{projection, embeddings + ".norm"}
	for k := range n {
		modules = append(modules, fmt.Sprintf("vit.encoder.layer.%d", k))
	}
	modules = append(modules, "vit.layernorm", "classifier")
	held := map[string]graph.TensorID{}
	for _, m := range modules {
		held[m] = weight(m, "weight")
	}
	scale := weight("", "logit_scale")
	weight("", "logit_scale.exp_avg") // an optimizer's
	x := b.Output(b.Op(graph.Op{Name: "pixels", Kind: "Placeholder", Forward: graph.None}, nil, graph.Tensor{Bytes: 8}), 0)
	op := func(name, module, kind string, in ...graph.TensorID) {
		x = b.Output(b.Op(graph.Op{Name: name, Module: module, Kind: graph.Kind(kind), Bytes: 16, Forward: graph.None}, in, graph.Tensor{Bytes: 8}), 0)
	}
	op("conv", projection, "Conv2D", x, held[projection])
	op("cat", embeddings, "ConcatV2", class, x)
	op("add", embeddings, "AddV2", x, position)
	for _, m := range modules[1:] {
		op(m+"/mul", m, "MatMul", x, held[m])
	}
	op("mul", "", "Mul", x, scale)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// uncovered returns the tensors that accelerate's check_device_map says have no device.
func uncovered(g *graph.Graph, keys map[string]any) (missing []string) {
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Params == 0 {
			continue
		}
		found := false
		for key := range keys {
			found = found || key == "" || key == o.Name || strings.HasPrefix(o.Name, key+".")
		}
		if !found {
			missing = append(missing, o.Name)
		}
	}
	return missing
}

// Every parameter has a device: a module that holds some beside modules is the key where all
// in it is on one device, and where it is not its parameters are. The map reads back as it is.
func TestParametersBesideModules(t *testing.T) {
	g, m := vision(t, 2), machine(t, 2)
	const layers = "  \"vit.encoder.layer.0\": %d,\n  \"vit.encoder.layer.1\": 1,\n  \"vit.layernorm\": 1,\n  \"classifier\": 1,\n"
	for _, c := range []struct {
		bounds []int
		want   string
	}{
		{[]int{0}, "{\n  \"\": 0\n}\n"},
		{[]int{0, 3}, "{\n  \"vit.embeddings\": 0,\n" + fmt.Sprintf(layers, 0) + "  \"logit_scale\": 1\n}\n"},
		{[]int{0, 1}, "{\n  \"vit.embeddings.patch_embeddings.projection\": 0,\n  \"vit.embeddings.norm\": 1,\n" + fmt.Sprintf(layers, 1) +
			"  \"vit.embeddings.cls_token\": 0,\n  \"vit.embeddings.position_embeddings\": 0,\n  \"logit_scale\": 1\n}\n"},
	} {
		s := split(t, g, m, c.bounds...)
		for _, name := range []string{"accelerate", "jax"} {
			target, err := formats.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := target.Write(&b, s); err != nil {
				t.Fatal(err)
			}
			if name == "accelerate" {
				var keys map[string]any
				if err := json.Unmarshal(b.Bytes(), &keys); err != nil || b.String() != c.want {
					t.Errorf("stages at %v: %v, wrote %s", c.bounds, err, &b)
				}
				if missing := uncovered(g, keys); missing != nil {
					t.Errorf("stages at %v: no device for %v", c.bounds, missing)
				}
			}
			p, err := formats.Read(b.Bytes(), "f", g, m)
			if err != nil || !slices.Equal(p.Device, s.Spread()) {
				t.Errorf("%s, stages at %v: %s reads back otherwise: %v", name, c.bounds, &b, err)
			}
		}
	}
}

// What others write of parameters is read as it says.
func TestMapsOfParameters(t *testing.T) {
	g, m := vision(t, 1), machine(t, 2)
	for text, want := range map[string][]uint8{ // of class token, positions, scale
		`{"vit": 1, "classifier": 0}`:                                  {1, 1, 0},
		`{"vit": 1, "vit.embeddings.cls_token": 0, "classifier": 0}`:   {0, 1, 0},
		`{"": 0, "vit.embeddings": 1, "logit_scale": "cuda:1"}`:        {1, 1, 1},
		`{"vit": 0, "classifier": "cpu", "logit_scale": "cpu"}`:        {0, 0, 2},
		`{"": 1, "vit.embeddings.patch_embeddings": 0, "vit.norm": 0}`: {1, 1, 1},
	} {
		p, err := formats.Read([]byte(text), "f", g, m)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := map[string]uint8{}
		for i, d := range p.Device {
			got[g.Op(graph.OpID(i)).Name] = d
		}
		if now := []uint8{got["vit.embeddings.cls_token"], got["vit.embeddings.position_embeddings"], got["logit_scale"]}; !slices.Equal(now, want) {
			t.Errorf("%s: on %v, want %v", text, now, want)
		}
	}
	_, err := formats.Read([]byte(`{"": 0, "vit.embeddings.cls_token": 9}`), "f", g, m)
	if want := `f: accelerate: module "vit.embeddings.cls_token": device "9" is none of machine a100`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A map has one CPU: of two sockets the one with more memory, of CPUs alone the first.
func TestCPUsOfMaps(t *testing.T) {
	g, target := vision(t, 1), formats.Targets()[0]
	m := &hw.Machine{Name: "sockets", Devices: []hw.Device{{Name: "cpu:0", Kind: hw.CPU, Memory: 1}, {Name: "gpu:0", Kind: hw.GPU}, {Name: "cpu:1", Kind: hw.CPU, Memory: 2}}}
	s := split(t, g, m, 0)
	for d, legal := range []bool{false, true, true} {
		for k := range s.Device {
			s.Device[k] = uint8(d)
		}
		if err := target.Legal(s); (err == nil) != legal {
			t.Errorf("all on %s: %v", m.Devices[d].Name, err)
		}
	}
	m = &hw.Machine{Name: "cores", Devices: []hw.Device{{Name: "cpu:0", Kind: hw.CPU}, {Name: "cpu:1", Kind: hw.CPU}}}
	s = split(t, g, m, 0, 2)
	want := "vit.encoder.layer.0 is on cpu:1, and accelerate has one CPU alone, cpu:0"
	if err := target.Legal(s); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	near := target.Nearest(g, m, s.Parts, s.Spread(), nil)
	if err := target.Legal(near); err != nil || slices.Max(near.Device) != 0 {
		t.Errorf("the nearest is on %v: %v", near.Device, err)
	}
}
