package workloads

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/train"
)

func TestParse(t *testing.T) {
	p, err := parse("llama:layers=2,hidden=256,heads=8,kv_heads=2,ffn=512,seq=64,batch=3,dtype=f32,optimizer=sgd")
	if err != nil {
		t.Fatal(err)
	}
	want := newLlama()
	want.layers, want.hidden, want.heads, want.kvHeads, want.ffn, want.seq, want.batch, want.dtype, want.train.Optimizer = 2, 256, 8, 2, 512, 64, 3, graph.F32, train.SGD
	if c := p.(*decoder); !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v, want %+v", c, want)
	}
	g, err := Build("llama:layers=1,hidden=64,heads=4,kv_heads=2,ffn=32,seq=8,vocab=50")
	if err != nil {
		t.Fatal(err)
	}
	if g.Name() != "llama:layers=1,hidden=64,heads=4,kv_heads=2,ffn=32,seq=8,vocab=50" {
		t.Errorf("graph is named %q", g.Name())
	}
	if _, err := parse("vit"); err != nil {
		t.Errorf("a family without settings: %v", err)
	}
}

func TestParseErrors(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"no family", "lama:layers=2", `unknown family "lama", did you mean llama?`},
		{"nothing alike", "zzz:layers=2", "want one of rnnlm, gnmt"},
		{"no value", "gnmt:layers", `"layers" is not of the form key=value`},
		{"not a number", "gnmt:layers=two", "layers=two: want a whole number"},
		{"a fraction", "gnmt:layers=2.5", "layers=2.5: want a whole number"},
		{"beyond integers", "gnmt:layers=99999999999999999999", "want a whole number"},
		{"unknown setting", "gnmt:layer=2", `unknown setting "layer", did you mean layers`},
		{"twice", "gnmt:layers=2,layers=3", "layers is set twice"},
		{"out of range", "gnmt:layers=0", "layers is 0, want 1 to 1024"},
		{"several faults", "gnmt:layers=0,batch=-1", "batch is -1"},
		{"too large together", "rnnlm:layers=1000,unroll=4000", "layers * unroll is 4000000"},
		{"no type", "llama:dtype=f31", `unknown element type "f31"`},
		{"integers", "llama:dtype=i8", "dtype is i8"},
		{"no optimizer", "vit:optimizer=lion", `unknown optimizer "lion"`},
		{"master weights of f32", "llama:master_weights=true,dtype=f32", "master_weights is true with weights of f32, want f16 or bf16"},
		{"master weights of inference", "vit:optimizer=none,master_weights=true", "master_weights is true without an optimizer"},
		{"heads", "llama:hidden=100,heads=7,kv_heads=7", "hidden is 100, want a multiple of twice the 7 heads"},
		{"groups", "llama:heads=32,kv_heads=5", "heads is 32, want a multiple of the 5 kv_heads"},
		{"experts", "moe:top_k=9", "top_k is 9, want 1 to 8"},
		{"segments", "trfxl:sequence=100", "sequence of 100 is no multiple of the segment, 64"},
		{"cells", "amoebanet:cells=10", "cells is 10, want a multiple of 3"},
		{"patches", "vit:patch=15", "size is 224, want a multiple of the patch, 15"},
		{"levels", "unet:size=100,levels=4", "size is 100, want a multiple of 8 for 4 levels"},
		{"heads of a U-Net", "unet:heads=3", "width is 64, want a multiple of the 3 heads"},
		{"towers", "clip:heads=5", "hidden is 768, want a multiple of twice the 5 heads"},
		{"tower layers", "recommender:towers=256,top=1024", "towers * top is 262144"},
		{"zero patch", "vit:patch=0", "patch is 0"},
		{"flag", "gnmt:dropout=maybe", "dropout=maybe: want true or false"},
		{"empty part", "gnmt:layers=2,", `"" is not of the form key=value`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("parse(%q): %v, want %q in it", c.text, err, c.want)
			}
			if _, err := Build(c.text); err == nil {
				t.Errorf("Build(%q) gives no error", c.text)
			}
		})
	}
}

// TestExtremes builds settings at the edges of what is allowed: they give a
// graph or an error, and no panic.
func TestExtremes(t *testing.T) {
	cases := []struct {
		text string
		want string // in the error; empty for a graph
	}{
		{"inception:size=107,batch=1", ""},
		{"amoebanet:size=32,cells=3,filters=16,batch=1", ""},
		{"wavenet:stacks=1,length=1,batch=1,residual=1,skip=1,levels=2", ""},
		{"gnmt:layers=1,source=1,target=1,batch=1,hidden=1,vocab=2", ""},
		{"trfxl:layers=1,sequence=1,segment=1,hidden=2,ffn=1,heads=1,head_dim=1,vocab=2", ""},
		{"moe:layers=1,experts=1,top_k=1,seq=1,hidden=2,heads=1,kv_heads=1,ffn=1,vocab=2", ""},
		{"vit:size=1,patch=1,layers=1,hidden=1,heads=1,ffn=1,batch=1,classes=2", ""},
		{"unet:levels=1,blocks=1,width=1,size=1,heads=1,batch=1", ""},
		{"resnext:blocks=1,branches=1,width=1,size=16,classes=2,batch=1", ""},
		{"densenet:layers=1,growth=1,size=16,classes=2,batch=1", ""},
		{"recurrent:layers=1,unroll=1,inputs=1,hidden=1,classes=2,batch=1", ""},
		{"seq2seq:encoder=1,decoder=1,source=1,target=1,hidden=1,vocab=2,batch=1", ""},
		{"transformer:encoder=1,decoder=1,hidden=1,heads=1,ffn=1,source=1,target=1,vocab=2,batch=1", ""},
		{"recommender:tables=1,rows=8,dim=1,lookups=1,numbers=1,bottom=1,top=1,width=1,batch=1", ""},
		{"clip:images=1,captions=1,hidden=2,heads=1,tokens=1,size=1,patch=1,vocab=2,joint=1,batch=1", ""},
		{"llama:layers=1,seq=262144,batch=65536,hidden=262144,heads=4096,kv_heads=4096,attention=products", "too large"},
		{"llama:layers=1,attention=neither", "want kernel or products"},
		{"rnnlm:layers=1,unroll=1,batch=1048576,hidden=1048576,vocab=268435456", "out of range"},
	}
	for _, c := range cases {
		g, err := Build(c.text)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.want == "" && g.NumOps() < 100:
			t.Errorf("%s: %d ops", c.text, g.NumOps())
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q in the error", c.text, err, c.want)
		}
	}
	for _, p := range []model{&rnnlm{}, &gnmt{}, &transformerXL{}, &inception{}, &amoebaNet{}, &waveNet{}, &decoder{}, &vit{}, &unet{}, &resnext{}, &densenet{}, &recurrent{}, &seq2seq{}, &transformer{}, &recommender{}, &clip{}} {
		if _, err := build(p, "zeros"); err == nil {
			t.Errorf("%T of zeros gives a graph", p)
		}
	}
}

func TestUnknownName(t *testing.T) {
	cases := []struct{ name, want string }{
		{"gnmt9", "did you mean gnmt2, gnmt4, gnmt8"},
		{"GNMT8", "did you mean gnmt8"},
		{"inceptoin", "did you mean inception"},
		{"wavenet", "did you mean wavenet2"},
		{"", "want one of rnnlm2, rnnlm4"},
		{"something else", "want one of rnnlm2, rnnlm4"},
	}
	for _, c := range cases {
		if _, err := Build(c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Build(%q): %v, want %q in it", c.name, err, c.want)
		}
	}
}

// TestList checks names, and that their settings are valid.
func TestList(t *testing.T) {
	var names []string
	for _, s := range List() {
		names = append(names, s.Name)
		if err := validate(s.model); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	want := strings.Fields("rnnlm2 rnnlm4 rnnlm8 gnmt2 gnmt4 gnmt8 trfxl2 trfxl4 trfxl8 inception inception64 amoebanet wavenet2 wavenet4 wavenet5 wavenet10 llama llama70b moe vit vitl")
	if !slices.Equal(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
}

// FuzzParse checks that no text panics and that what parses is valid.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"gnmt", "gnmt:", "gnmt:layers=3,source=20", "moe:experts=4,top_k=2,dtype=bf16", "vit:patch=0", "llama:heads=0,kv_heads=0", "trfxl:segment=-1", ":", "=,=", "amoebanet:fused_norm=true"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parse(s)
		if err != nil {
			return
		}
		if err := validate(p); err != nil {
			t.Errorf("parse(%q) gives invalid settings: %v", s, err)
		}
	})
}
