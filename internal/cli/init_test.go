package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/hw"
	"placer/hw/nvml"
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
		{"--gpu l4*40,l4*40", "80 cards, want fewer than 64"},
	} {
		if out := command(t, append([]string{"machines", "init"}, strings.Fields(c.args)...)); !strings.Contains(out, c.want) || !strings.Contains(out, "exit 2") {
			t.Errorf("%s: %s, want %q", c.args, out, c.want)
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
