package hw

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"placer/units"
)

// box is a small machine file; the error cases change one place of it.
const box = `{
  "format": "placer machine 1",
  "name": "box",
  "models": {
    "G": {"kind": "gpu", "arch": "sm_60", "capacity": "16 GB", "reserve": "1 GB", "memory_bandwidth": "700 GB/s",
          "peak": {"f32": "9 TFLOP/s"}, "launch": "5 us", "sms": 56, "l2": "4 MiB", "source": "test"}
  },
  "devices": [{"name": "gpu:[0-1]", "model": "G"}],
  "links": [{"name": "there", "bandwidth": "10 GB/s", "latency": "3 us", "source": "test"},
            {"name": "back", "bandwidth": "20 GB/s", "latency": "4 us", "source": "test"}],
  "routes": [{"from": "gpu:0", "to": "gpu:1", "links": ["there"]},
             {"from": "gpu:1", "to": "gpu:0", "links": ["back", "there"]}]
}
`

func TestRead(t *testing.T) {
	m, err := Read(strings.NewReader(box))
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Devices[1]; m.Name != "box" || m.NumDevices() != 2 || d.Name != "gpu:1" || d.Model != "G" || d.Memory != 15e9 || d.Capacity != 16e9 ||
		d.MemoryBandwidth != 700e9 || d.Peak["f32"] != 9e12 || d.Launch != 5e-6 || d.SMs != 56 || d.L2 != 4<<20 || d.Arch != "sm_60" {
		t.Errorf("read %+v", m)
	}
	if l, b := m.Transfer(1, 0); l != units.Seconds(4e-6)+3e-6 || b != 10e9 {
		t.Errorf("route from gpu:1 to gpu:0: %v and %v, want 7 us and 10 GB/s", l, b)
	}
	if got := m.TransferSeconds(0, 1, 10e9); got != 1+3e-6 {
		t.Errorf("10 GB from gpu:0 to gpu:1 take %v", got)
	}
	if got := m.TransferSeconds(1, 1, 10e9); got != 0 {
		t.Errorf("10 GB to where they are take %v", got)
	}
}

func TestReadErrors(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new string
		want     []string // all of them in the error
	}{
		{"empty", box, "", []string{"line 1, column 1", "ends early"}},
		{"truncated", box[200:], "", []string{"line 6, column 22: models.G.peak", "the document ends in a string"}},
		{"not JSON", `"name": "box",`, `"name": box,`, []string{"line 3, column 11: name", "not valid JSON"}},
		{"trailing data", "]}]\n}\n", "]}]\n}\n{}", []string{"line 14, column 1", "data after the end"}},
		{"another format", "machine 1", "machine 2", []string{"line 2", "format", `"placer machine 2"`}},
		{"array", box, "[]", []string{"is an array, want an object"}},
		{"unknown key", `"name": "box",`, `"name": "box", "nmae": 1,`, []string{"line 3, column 18", `unknown key "nmae"`}},
		{"repeated key", `"name": "box",`, `"name": "box", "name": "x",`, []string{"line 3, column 18: name", "occurs twice"}},
		{"key in another case", `"kind"`, `"Kind"`, []string{"line 5, column 11: models.G", `unknown key "Kind"`}},
		{"missing key", `"sms": 56, `, ``, []string{"line 5", "models.G", `"sms" is missing`}},
		{"missing devices", `"devices": [{"name": "gpu:[0-1]", "model": "G"}],`, ``, []string{`key "devices" is missing`}},
		{"no unit", `"16 GB"`, `"16"`, []string{"line 5, column 55: models.G.capacity", "want a number and a unit in B"}},
		{"number for a quantity", `"16 GB"`, `16e9`, []string{"models.G.capacity", "is the number 16e9, want a string"}},
		{"null", `"5 us"`, `null`, []string{"models.G.launch", "is null"}},
		{"fraction", `"sms": 56`, `"sms": 5.6`, []string{"models.G.sms", "is the number 5.6, want a whole number"}},
		{"nothing left", `"1 GB"`, `"16 GB"`, []string{"leave no memory"}},
		{"negative reserve", `"1 GB"`, `"-1 GB"`, []string{"leave no memory"}},
		{"negative cache", `"4 MiB"`, `"-4 MiB"`, []string{"models.G.l2", "not negative"}},
		{"kind", `"kind": "gpu"`, `"kind": "tpu"`, []string{"models.G.kind", `"tpu"`}},
		{"no f32", `"f32"`, `"f16"`, []string{"models.G.peak", `"f32" is missing`}},
		{"element type", `{"f32": "9 TFLOP/s"}`, `{"f32": "9 TFLOP/s", "f8e4": "9 TFLOP/s"}`, []string{"models.G.peak", `unknown key "f8e4"`}},
		{"zero rate", `"9 TFLOP/s"`, `"0 TFLOP/s"`, []string{"models.G.peak.f32", "positive"}},
		{"zero memory bandwidth", `"700 GB/s"`, `"0 GB/s"`, []string{"device gpu:0", "memory_bandwidth"}},
		{"negative launch", `"5 us"`, `"-5 us"`, []string{"device gpu:0", "launch"}},
		{"unknown model", `"model": "G"`, `"model": "H"`, []string{"line 8", "devices[0].model", `"H"`}},
		{"device twice", `[{"name": "gpu:[0-1]", "model": "G"}]`, `[{"name": "gpu:[0-1]", "model": "G"}, {"name": "gpu:1", "model": "G"}]`, []string{"devices[1]", `"gpu:1" occurs twice`}},
		{"bad range", `gpu:[0-1]`, `gpu:[1-0]`, []string{"devices[0]", "want a range"}},
		{"open range", `gpu:[0-1]`, `gpu:[0-1`, []string{"devices[0]", "want a range"}},
		{"too many devices", `gpu:[0-1]`, `gpu:[0-1024]`, []string{"want a range"}},
		{"no device", `[{"name": "gpu:[0-1]", "model": "G"}]`, `[]`, []string{"0 devices"}},
		{"empty device name", `gpu:[0-1]`, ``, []string{"devices[0]", "empty"}},
		{"link twice", `"name": "back"`, `"name": "there"`, []string{"links[1]", `"there"`, "taken"}},
		{"zero latency", `"3 us"`, `"0 s"`, []string{"links[0]", "must be positive"}},
		{"missing route", `,
             {"from": "gpu:1", "to": "gpu:0", "links": ["back", "there"]}`, ``, []string{"machine box", "gpu:1 cannot reach gpu:0"}},
		{"route twice", `"from": "gpu:1", "to": "gpu:0"`, `"from": "gpu:0", "to": "gpu:1"`, []string{"routes[1]", "given twice"}},
		{"route to itself", `"from": "gpu:1", "to": "gpu:0"`, `"from": "gpu:0", "to": "gpu:0"`, []string{"routes[1]", "nowhere"}},
		{"route of no device", `"to": "gpu:1"`, `"to": "gpu:2"`, []string{"routes[0].to", `"gpu:2" does not exist`}},
		{"route of no link", `["there"]`, `["their"]`, []string{"routes[0].links[0]", `"their" does not exist`}},
		{"link twice in a route", `["back", "there"]`, `["back", "back"]`, []string{"routes[1].links[1]", "twice"}},
		{"cable of three ends", `"links": [{"name"`, `"cables": [{"ends": ["a", "b", "c"], "bandwidth": "1 GB/s", "latency": "1 us", "source": ""}], "links": [{"name"`, []string{"cables[0].ends", "two names"}},
		{"cable twice", `"links": [{"name"`, `"cables": [{"ends": ["a", "b"], "bandwidth": "1 GB/s", "latency": "1 us", "source": ""}, {"ends": ["b", "a"], "bandwidth": "1 GB/s", "latency": "1 us", "source": ""}], "links": [{"name"`, []string{"cables[1].ends", "joined already"}},
		{"cable to itself", `"links": [{"name"`, `"cables": [{"ends": ["gpu:0", "gpu:0"], "bandwidth": "1 GB/s", "latency": "1 us", "source": ""}], "links": [{"name"`, []string{"cables[0].ends", "one end"}},
		{"too deep", `"name": "box"`, `"name": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40), []string{"nested deeper"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(box, c.old) {
				t.Fatalf("the box has no %q", c.old)
			}
			m, err := Read(strings.NewReader(strings.Replace(box, c.old, c.new, 1)))
			if err == nil {
				t.Fatalf("read %+v", m)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q, want %q in it", err, w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q has several lines", err)
			}
		})
	}
}

func TestReadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(path, []byte("{\n  7}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.HasPrefix(err.Error(), path+": line 2, column 3: ") {
		t.Errorf("error %v, want it to begin with the path, line 2, column 3", err)
	}
	if _, err := ReadFile(path + "x"); !os.IsNotExist(err) {
		t.Errorf("error %v, want one that says that the file does not exist", err)
	}
	if err := os.WriteFile(path, []byte(box), 0o644); err != nil {
		t.Fatal(err)
	}
	if m, err := ReadFile(path); err != nil || m.Name != "box" {
		t.Errorf("read %v, %v", m, err)
	}
}

func TestMachinesRoundTrip(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			m, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			var buf bytes.Buffer
			if err := m.Write(&buf); err != nil {
				t.Fatal(err)
			}
			again, err := Read(&buf)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(m, again); d != "" {
				t.Errorf("write and read changed the machine:\n%s", d)
			}
			if m.Hash() != again.Hash() {
				t.Error("write and read changed the hash")
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	m, err := Take("p100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	m.Devices[1].Launch *= 2
	if err := m.Write(new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "gpu:0 and gpu:1") {
		t.Errorf("error %v, want one that names the two devices of one model", err)
	}
	m.Routes = nil
	if err := m.Write(new(bytes.Buffer)); err == nil {
		t.Error("wrote a machine without routes")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(box))
	for _, name := range Names() {
		data, err := machineFiles.ReadFile("machines/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		if err := m.Check(); err != nil {
			t.Errorf("read a machine that does not pass its check: %v", err)
		}
		var buf bytes.Buffer
		if err := m.Write(&buf); err != nil {
			t.Fatalf("write: %v", err)
		}
		again, err := Read(&buf)
		if err != nil {
			t.Fatalf("read of what was written: %v", err)
		}
		if again.Hash() != m.Hash() {
			t.Error("write and read changed the machine")
		}
	})
}
