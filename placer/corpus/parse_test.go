package corpus

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"placer/plan"
)

// sample returns a corpus of one problem, whose label is every op on the last device.
func sample(t testing.TB) *Corpus {
	t.Helper()
	r := Recipe{Families: []string{"towers"}, Net: "towers:6,8,16,1,3", Tasks: plan.AllTasks.String(), Machine: Machine{GPUs: []string{"p100", "p100", "v100"}, Group: 2, Bandwidth: 12, Uplink: 3}}
	p, err := r.Problem()
	if err != nil {
		t.Fatal(err)
	}
	x := &Problem{Recipe: r, Evaluations: 1, Method: "none", Expert: Score{Seconds: 1}, OneDevice: Score{Seconds: 2, Overflow: 3}}
	if err := x.label(p, plan.Decision{Device: slices.Repeat([]uint8{2}, p.Graph.NumOps())}); err != nil {
		t.Fatal(err)
	}
	return &Corpus{Default(), []Problem{*x}}
}

func bytesOf(t testing.TB, c *Corpus) []byte {
	t.Helper()
	data, err := c.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParse(t *testing.T) {
	c := sample(t)
	data := bytesOf(t, c)
	for _, x := range [][]byte{data, append(slices.Clone(data), `{"index": 1`...), append(slices.Clone(data), '\n')} {
		got, err := Parse(x, "c")
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s: %+v, %v", x, got, err)
		}
	}
	if err := c.Problems[0].Check(); err != nil {
		t.Error(err)
	}
	first, line, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), "\n")
	for _, bad := range []struct{ name, text, want string }{
		{"nothing", "", "c: no first line"},
		{"no JSON", "seed\n", "c: line 1: invalid character"},
		{"another format", `{"format":"placer corpus 2","seed":1,"cpu_seconds":1,"evaluations":0}` + "\n", `line 1: format is "placer corpus 2", want "placer corpus 1"`},
		{"two budgets", `{"format":"placer corpus 1","seed":1,"cpu_seconds":1,"evaluations":1}` + "\n", "line 1: 1 CPU seconds and 1 evaluations"},
		{"unknown key", first + "\n" + strings.Replace(line, `"index"`, `"indx"`, 1) + "\n", `line 2: json: unknown field "indx"`},
		{"cut in the middle", first + "\n" + line[:40] + "\n" + line + "\n", "line 2: the document ends early"},
		{"more than a document", first + "\n" + line + "{}\n", "line 2: data after the end"},
		{"twice", first + "\n" + line + "\n" + line + "\n", "line 3: problem 0 occurs twice"},
		{"unknown family", first + "\n" + strings.Replace(line, `["towers"]`, `["tower"]`, 1) + "\n", `line 2: unknown family "tower"`},
		{"no devices", first + "\n" + strings.Replace(line, `["p100","p100","v100"]`, `[]`, 1) + "\n", "line 2: machine: 0 GPUs"},
		{"no time", first + "\n" + strings.Replace(line, `"expert":{"seconds":1}`, `"expert":{"seconds":0}`, 1) + "\n", "line 2: expert: 0 seconds"},
		{"tasks", first + "\n" + strings.Replace(line, plan.AllTasks.String(), "place,cook", 1) + "\n", `"cook" is no task`},
		{"no base64", first + "\n" + strings.Replace(line, `"plan":"`, `"plan":"*`, 1) + "\n", "line 2: plan: illegal base64"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			if _, err := Parse([]byte(bad.text), "c"); err == nil || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("error %v, want %q in it", err, bad.want)
			}
		})
	}
}

// FuzzParse: no file makes the reader panic, and what it reads is written back as what
// is read again.
func FuzzParse(f *testing.F) {
	f.Add(bytesOf(f, sample(f)))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data, "c")
		if err != nil {
			return
		}
		again, err := Parse(bytesOf(t, c), "c")
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("read again: %v", err)
		}
	})
}

// TestCode: decisions come back as they were, and what is no decision is an error.
func TestCode(t *testing.T) {
	p, err := sample(t).Problems[0].Problem()
	if err != nil {
		t.Fatal(err)
	}
	n := p.Graph.NumOps()
	r := rand.New(rand.NewPCG(1, 1))
	device, fusion, priority := make([]uint8, n), make([]uint8, n), make([]int32, n)
	for i, k := range r.Perm(n) {
		fusion[i], priority[i] = uint8(r.IntN(256)), int32(k)
	}
	for _, d := range []plan.Decision{{Device: device}, {Device: device, Fusion: fusion}, {Device: device, Priority: priority}, {Device: device, Priority: priority, Fusion: fusion}, {Device: device, Priority: p.Priority}} {
		code, err := encode(p, d)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(p, code)
		if want := d.Or(plan.Decision{Priority: p.Priority}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
		for cut := range len(code) {
			if _, err := decode(p, code[:cut]); err == nil {
				t.Errorf("%d bytes of %d are a decision", cut, len(code))
			}
		}
	}
	device[n/2] = 3
	if code, err := encode(p, plan.Decision{Device: device}); err != nil {
		t.Fatal(err)
	} else if _, err := decode(p, code); err == nil || !strings.Contains(err.Error(), "is on device 3") {
		t.Errorf("a device that there is not: %v", err)
	}
	bomb := make([]uint8, 1<<20)
	if code, err := encode(p, plan.Decision{Device: bomb}); err != nil {
		t.Fatal(err)
	} else if _, err := decode(p, code); err == nil || !strings.Contains(err.Error(), "bytes for") {
		t.Errorf("too many devices: %v", err)
	}
}

// TestSelect: the first problems that fit of families that are not held out.
func TestSelect(t *testing.T) {
	c := &Corpus{}
	for i, f := range []string{"gnmt", "towers", "unet", "gnmt", "mix towers gnmt", "towers"} {
		x := Problem{Index: i, Recipe: Recipe{Families: strings.Fields(f)}}
		if i == 1 {
			x.Best.Overflow = 1
		}
		c.Problems = append(c.Problems, x)
	}
	for _, s := range []struct {
		names, held []string
		most        int
		want        []int
	}{
		{nil, nil, 0, []int{0, 2, 3, 4, 5}},
		{nil, nil, 2, []int{0, 2}},
		{nil, []string{"gnmt"}, 0, []int{2, 5}},
		{nil, []string{"seq2seq"}, 1, []int{2}},
		{[]string{"towers"}, nil, 0, []int{5}},
		{nil, []string{"gnmt"}, 3, nil},
		{[]string{"wavenet"}, nil, 0, nil},
		{[]string{"no"}, nil, 0, nil},
	} {
		some, err := c.Select(s.names, s.held, s.most)
		var got []int
		for _, x := range some {
			got = append(got, x.Index)
		}
		if !slices.Equal(got, s.want) || (err == nil) != (s.want != nil) {
			t.Errorf("%v without %v, %d: %v, %v; want %v", s.names, s.held, s.most, got, err, s.want)
		}
	}
	if a, b := Fingerprint(c.Problems), Fingerprint(c.Problems[1:]); a == b || Fingerprint(nil) != "" {
		t.Errorf("fingerprints %q and %q", a, b)
	}
}

// TestMachines: drawn machines build, come back from JSON as they were, and are of the
// kinds that a corpus is to have.
func TestMachines(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	unequal, groups, meshes := 0, 0, 0
	const n = 200
	for range n {
		m := drawMachine(r)
		x, err := m.Build()
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		if x.NumDevices() != len(m.GPUs) || x.NumDevices() < 2 {
			t.Errorf("%+v: %d devices", m, x.NumDevices())
		}
		_, first := x.Transfer(0, 1)
		_, last := x.Transfer(0, x.NumDevices()-1)
		if m.Group > 1 && math.Abs(float64(first)-m.Bandwidth*1e9) > 1 || m.Group < len(m.GPUs) && float64(last) > m.Uplink*1e9+1 {
			t.Errorf("%+v: %v to the next device, %v to the last", m, first, last)
		}
		data, err := json.Marshal(m)
		var again Machine
		if err != nil || json.Unmarshal(data, &again) != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%s: %+v, %v", data, again, err)
		}
		if m.GPUs[0] != m.GPUs[len(m.GPUs)-1] {
			unequal++
		}
		if m.Group < len(m.GPUs) {
			groups++
		}
		if m.Mesh {
			meshes++
		}
	}
	if unequal < n/6 || groups < n/8 || meshes < n/12 {
		t.Errorf("of %d machines %d unequal, %d in groups, %d meshes", n, unequal, groups, meshes)
	}
	limited := Machine{GPUs: []string{"p100", "h100"}, Group: 2, Bandwidth: 1, Memory: 1 << 30}
	if x, err := limited.Build(); err != nil || x.Devices[1].Memory != 1<<30 {
		t.Errorf("%v, %v", x, err)
	}
	for _, bad := range []Machine{{}, {GPUs: []string{"p100"}, Group: 2, Bandwidth: 1}, {GPUs: []string{"p100"}, Group: 1}, {GPUs: []string{"p101"}, Group: 1, Bandwidth: 1},
		{GPUs: []string{"p100", "p100"}, Group: 1, Bandwidth: 1}, {GPUs: []string{"p100"}, Group: 1, Bandwidth: 1, Uplink: 1}, {GPUs: slices.Repeat([]string{"p100"}, 17), Group: 17, Bandwidth: 1}} {
		if _, err := bad.Build(); err == nil {
			t.Errorf("%+v builds", bad)
		}
	}
}
