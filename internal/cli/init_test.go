package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"placer/hw"
	"placer/hw/nvml"
	"placer/placer/verdict"
)

// TestInit: a machine file by names and from what lspci says, that every command takes.
func TestInit(t *testing.T) {
	t.Chdir(t.TempDir())
	if out := command(t, []string{"machines", "init", "--gpu", "rtx4090,RTX 3060*2", "--cpu", "128GB", "--pcie", "4", "-o", "box.json"}); out != "" {
		t.Fatal(out)
	}
	m, err := hw.ReadFile("box.json")
	if err != nil {
		t.Fatal(err)
	}
	if m.NumDevices() != 4 || m.Devices[0].Model != "GeForce RTX 4090" || m.Devices[3].Kind != hw.CPU || m.Devices[3].Capacity != 128e9 {
		t.Errorf("%+v", m.Devices)
	}
	for i := range m.Devices {
		for j := range m.Devices {
			if i != j && len(m.Route(i, j)) == 0 {
				t.Errorf("%s and %s are not linked", m.Devices[i].Name, m.Devices[j].Name)
			}
		}
	}
	out := command(t, []string{"search", "--workload", "rnnlm:layers=1,unroll=2", "--machine", "box.json", "--methods", "single,heft", "--evaluations", "5", "--out", "run", "-q"})
	if strings.Contains(out, "exit") || strings.Contains(out, "no machine is named") {
		t.Error(out)
	}
	for _, c := range []struct{ args, want string }{
		{"--gpu rtx1", `unknown card "rtx1", want one of rtx3060`},
		{"--gpu l4*0", "want a card and how many"},
		{"--gpu l4 --pcie 9", "want a generation from 1 to 6"},
		{"--pcie 9", "want a generation from 1 to 6"},
		{"--cpu much", "want the host's memory, as 128GB"},
		{"--cpu 64GB --cores 0", "want at least 1"},
		{"--gpu l4*600,l4*600", "1200 cards, want fewer than 1024"},
		{"--nodes 2", "--nodes goes with --gpu"},
		{"--gpu h100 --nodes 2", "--nodes 2: --network says what joins them"},
		{"--gpu h100 --gpus 8 --network 8xndr", "--network joins several hosts: say how many by --nodes"},
		{"--gpu h100 --gpus 8 --nodes 2 --network 3xndr", "3 NICs cannot be shared out evenly among the 8 GPUs of a host"},
		{"--gpu h100 --gpus 8 --nodes 2 --network 400", `--network "400": want the NICs of a host and the rate of each, as 8x400Gb/s`},
		{"--gpu h100 --gpus 8 --nodes 129 --network 8xndr", "1032 devices, want at most 1024"},
		{"--gpu l4 --gpus 99999999999 --nodes 2 --network ndr", "want at most 1024"},
		{"--gpu rtx4090*2 --links nvlink", "no switch of NVLink is known for rtx4090"},
		{"--gpu h100,l4 --links nvlink", "the cards of a host differ"},
		{"--gpu h100 --links ib", "want nvlink or pcie"},
		{"--gpu h100 --gpus 0", "--gpus 0: want at least 1"},
		{"--gpu h100 --nodes 0", "--nodes 0: want at least 1"},
	} {
		if out := command(t, append([]string{"machines", "init"}, strings.Fields(c.args)...)); !strings.Contains(out, c.want) || !strings.Contains(out, "exit 2") {
			t.Errorf("%s: %s, want %q", c.args, out, c.want)
		}
	}
}

// Several hosts are a machine that every command takes; the cards of a host have NVLink where
// they have it in truth.
func TestInitCluster(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string][2]float64{ // GB/s between the first two GPUs, and between the first and the last
		"--gpu a100 --gpus 2 --nodes 2 --network 2xhdr":                {226, 22.5},
		"--gpu a100 --gpus 2 --nodes 2 --network 2xhdr --links pcie":   {25.2, 22.5},
		"--gpu a100 --gpus 2 --pcie 3 --nodes 2 --network 1x100Gb/s":   {12.6, 11.25},
		"--gpu l4,a10 --nodes 3 --network 2xhdr --cpu 64GB --cores 32": {25.2, 22.5},
	} {
		if out := command(t, append(strings.Fields("machines init -o cluster.json"), strings.Fields(args)...)); out != "" {
			t.Fatal(out)
		}
		m, err := hw.ReadFile("cluster.json")
		if err != nil {
			t.Fatal(err)
		}
		gpus := m.Accelerators()
		for k, to := range []uint8{gpus[1], gpus[len(gpus)-1]} {
			if _, rate := m.Transfer(int(gpus[0]), int(to)); float64(rate)/1e9 < 0.99*want[k] || float64(rate)/1e9 > 1.01*want[k] {
				t.Errorf("%s: %v from GPU 0 to device %d, want %v GB/s", args, rate, to, want[k])
			}
		}
		for _, line := range []string{
			"search --workload rnnlm:layers=1,unroll=2 --methods single,heft --evaluations 5 --out " + strings.NewReplacer(" ", "", "-", "", "/", "").Replace(args),
			"strategies --workload rnnlm:layers=1,unroll=2 --batch 12 --budget 0",
			"verdict --workload rnnlm:layers=1,unroll=2 --counts 1,2 --evaluations 5",
		} {
			if out := command(t, append(strings.Fields(line), "--machine", "cluster.json", "-q")); strings.Contains(out, "exit") {
				t.Errorf("%s, %s: %s", args, line, out)
			}
		}
	}
}

// Without a management library, what lspci prints names the cards.
func TestInitFromHost(t *testing.T) {
	dir := t.TempDir()
	c := newConsole(strings.NewReader(""), os.Stdout, os.Stderr)
	var notes strings.Builder
	c.err = &notes
	c.hardware.detect = func() (*nvml.Inventory, error) { return nil, nvml.ErrNoLibrary }
	c.hardware.host = func() nvml.Host { return nvml.Host{Cores: 8, Memory: 64 << 30, Arch: "avx2"} }
	c.hardware.pci = func() string {
		return "01:00.0 VGA compatible controller: NVIDIA Corporation GA106 [GeForce RTX 3060 Lite Hash Rate] (rev a1)\n02:00.0 VGA compatible controller: NVIDIA Corporation TU116 [GeForce GTX 1660]\n"
	}
	path := filepath.Join(dir, "here.json")
	if code := c.main([]string{"machines", "init", "-o", path}); code != exitDone {
		t.Fatal(code, notes.String())
	}
	m, err := hw.ReadFile(path)
	if err != nil || m.NumDevices() != 2 || m.Devices[0].Model != "GeForce RTX 3060" || m.Devices[1].SMs != 8 {
		t.Errorf("%v: %+v", err, m)
	}
	if !strings.Contains(notes.String(), "no figures are known of") || !strings.Contains(notes.String(), "1660") {
		t.Error(notes.String())
	}
}

// The slots of a host whose library tells them are not for --pcie to say.
func TestInitKnowsItsSlots(t *testing.T) {
	var out, notes strings.Builder
	c := newConsole(strings.NewReader(""), &out, &notes)
	c.hardware.detect = func() (*nvml.Inventory, error) { return &nvml.Inventory{}, nil }
	if code := c.main([]string{"machines", "init", "--pcie", "4"}); code != exitUsage || !strings.Contains(notes.String(), "--pcie goes with --gpu") {
		t.Errorf("exit %d: %s%s", code, out.String(), notes.String())
	}
}

// TestVerdictOfUnequalDevices: two files that init wrote have two names, the host's CPU
// costs nothing, and the answer says which devices the counts are of.
func TestVerdictOfUnequalDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"--gpu", "rtx3060,rtx4090", "--cpu", "64GB", "-o", "mixed.json"}, {"--gpu", "l4*2", "-o", "two l4.json"}} {
		if out := command(t, append([]string{"machines", "init"}, args...)); out != "" {
			t.Fatal(out)
		}
	}
	out := command(t, []string{"verdict", "--workload", "rnnlm:layers=1,unroll=2", "--machine", "mixed.json", "--machine", "two l4.json",
		"--evaluations", "1", "-q", "--price", "GeForce RTX 4090=0.4,GeForce RTX 3060=0.1,two l4=0.5"})
	if !strings.Contains(out, "mixed: its devices count in the order GeForce RTX 4090 (gpu:1), GeForce RTX 3060\n  (gpu:0), CPU of 16 cores (cpu:0).") {
		t.Error(out)
	}
	if strings.Contains(out, "two l4: its devices") || strings.Contains(out, "no price") {
		t.Error(out)
	}
	out = command(t, []string{"verdict", "--workload", "rnnlm:layers=1,unroll=2", "--machine", "mixed.json", "--machine", "mixed.json", "-q"})
	if !strings.Contains(out, `machine mixed is named twice; of two files with this name, change "name" in one`) {
		t.Error(out)
	}
}

// TestFileNames: machines whose names file names cannot tell apart have files of their own.
func TestFileNames(t *testing.T) {
	var ms []verdict.Machine
	for _, name := range []string{"box 1", "box-1", "服务器", "机器人"} {
		ms = append(ms, verdict.Machine{Machine: &hw.Machine{Name: name}})
	}
	if got := fileNames(ms); !slices.Equal(got, []string{"box-1", "box-1.2", "---", "---.2"}) {
		t.Errorf("files begin with %q", got)
	}
	if got := fileName(strings.Repeat("é", 300)); len(got) != longestName {
		t.Errorf("a name of 300 letters is %q", got)
	}
}
