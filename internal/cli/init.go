package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"placer/hw"
	"placer/hw/gpu"
	"placer/hw/nvml"
	"placer/internal/words"
	"placer/units"
)

// Assumed of a host that is named by its memory alone.
const hostCores = 16

// initFlags are the flags of machines init.
type initFlags struct {
	gpus         []string // cards by name
	memory, slot string
	pcie         hw.Slot // that slot says
	cores        int
	count        int // of each card in a host
	hosts        int
	between      string // rate of the network, as it is written
	network      hw.Network
	links        string
	name, out    string
}

func (c *console) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a machine file, from this host or by the names of cards",
		Long: "init writes a machine file to edit. With --gpu it is about the cards named, with\n" +
			"the figures of their data sheets; a card may be repeated as rtx3060*2. Without, it is\n" +
			"about this host: what NVIDIA's management library tells, or else lspci, and /proc. Every\n" +
			"card is cabled to the host over PCIe, several a100, h100, h200, b200 or gb200 to a\n" +
			"switch of NVLink; --nodes hosts are joined by --network. What is assumed stands in the\n" +
			"file beside the figure; 'placer bench hw' measures.",
		Example: "  placer machines init --gpu rtx4090,rtx3060 --cpu 128GB --pcie 4 -o box.json\n" +
			"  placer machines init --gpu h100 --gpus 8 --nodes 2 --network 8x400Gb/s -o cluster.json\n" +
			"  placer machines init -o here.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.cores < 1:
				return usagef("--cores %d: want at least 1", f.cores)
			case cmd.Flags().Changed("cores") && f.memory == "":
				return usagef("--cores goes with --cpu, which names the CPU's memory")
			}
			if f.slot != "" {
				var err error
				if f.pcie, err = hw.ParseSlot(f.slot); err != nil {
					return usagef("--pcie: %v", err)
				}
			}
			if err := f.cluster(cmd); err != nil {
				return err
			}
			f.name = cmp.Or(f.name, nameOf(f.out))
			if !cmd.Flags().Changed("gpu") && !cmd.Flags().Changed("cpu") {
				return c.initHere(&f)
			}
			return c.initNamed(&f)
		},
	}
	cmd.Flags().StringSliceVar(&f.gpus, "gpu", nil, "cards by name, in the order of their slots; placer machines --cards lists them")
	cmd.Flags().IntVar(&f.count, "gpus", 1, "how many of each card of --gpu a host has")
	cmd.Flags().IntVar(&f.hosts, "nodes", 1, "hosts, all alike")
	cmd.Flags().StringVar(&f.between, "network", "", "what joins the hosts: NICs of a host and the rate of each, as 8x400Gb/s, 100Gb/s or 8xndr")
	cmd.Flags().StringVar(&f.links, "links", "", "between the GPUs of a host, nvlink or pcie (default nvlink for several a100, h100, h200, b200 or gb200 alone)")
	cmd.Flags().StringVar(&f.memory, "cpu", "", "make the host's CPU a device with this memory, as 128GB")
	cmd.Flags().IntVar(&f.cores, "cores", hostCores, "cores of the CPU that --cpu names")
	cmd.Flags().StringVar(&f.slot, "pcie", "", "PCIe generation of the host's slots, and lanes, as 4 or 4x8 (default each card's own)")
	cmd.Flags().StringVar(&f.name, "name", "", "name of the machine (default that of the -o file, or box)")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "write the machine file there; stdout without it")
	return cmd
}

// nameOf is the name of a machine that is written to a file, by the file's.
func nameOf(file string) string {
	base := filepath.Base(file)
	if name := strings.TrimSuffix(base, filepath.Ext(base)); file != "" && file != "-" && name != "" {
		return name
	}
	return "box"
}

// cluster checks the flags that say how hosts and their cards are joined.
func (f *initFlags) cluster(cmd *cobra.Command) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	for _, name := range []string{"gpus", "nodes", "network", "links"} {
		if given(name) && !given("gpu") {
			return usagef("--%s goes with --gpu, which names the cards of a host", name)
		}
	}
	switch {
	case f.count < 1:
		return usagef("--gpus %d: want at least 1", f.count)
	case f.hosts < 1:
		return usagef("--nodes %d: want at least 1", f.hosts)
	case f.hosts > 1 && f.between == "":
		return usagef("--nodes %d: --network says what joins them, as --network 8x400Gb/s for eight NICs a host", f.hosts)
	case f.hosts == 1 && f.between != "":
		return usagef("--network joins several hosts: say how many by --nodes")
	case f.links != "" && f.links != "nvlink" && f.links != "pcie":
		return usagef("--links %s: want nvlink or pcie", f.links)
	case f.between == "":
		return nil
	}
	var err error
	if f.network, err = hw.ParseNetwork(f.between); err != nil {
		return usagef("--%v", err)
	}
	return nil
}

// initHere writes the machine that this host is: as NVIDIA's library tells, else as lspci
// and /proc do.
func (c *console) initHere(f *initFlags) error {
	host := c.hardware.host()
	inv, err := c.hardware.detect()
	switch {
	case err == nil && f.slot != "":
		return usagef("--pcie goes with --gpu: NVIDIA's library tells the slots of this host")
	case err == nil:
		m, err := inv.Machine(f.name, host)
		if err != nil {
			return err
		}
		return c.writeOutput(cmp.Or(f.out, "-"), m.Write)
	case !errors.Is(err, nvml.ErrNoLibrary) && !errors.Is(err, gpu.ErrNoDevice):
		return err
	}
	t := hw.Template{Name: f.name, Note: "Written by placer machines init on this host, from lspci and /proc: data sheets, nothing is measured."}
	var unknown []string
	t.Cards, unknown = hw.Named(c.hardware.pci())
	for _, line := range unknown {
		c.note("no figures are known of %s", line)
	}
	if len(t.Cards) == 0 {
		c.note("no GPU was found here: --gpu names cards, as --gpu rtx4090,rtx3060*2")
	}
	if host.Cores > 0 {
		t.CPU = host.Device()
	}
	return c.writeTemplate(f, &t)
}

// initNamed writes the machine of the cards and of the CPU that f names.
func (c *console) initNamed(f *initFlags) error {
	t := hw.Template{Name: f.name, Note: "Written by placer machines init from names: data sheets, nothing is measured."}
	if f.memory != "" {
		b, err := units.ParseBytes(spaced(f.memory))
		if err != nil || b < 1<<30 || b > 1<<50 {
			return usagef("--cpu %s: want the host's memory, as 128GB", f.memory)
		}
		host := nvml.Host{Memory: b, Cores: f.cores, Arch: "avx2"}
		t.CPU = host.Device()
		t.CPU.Source = fmt.Sprintf("memory and %d cores as named; 2.5 GHz, two AVX2 units a core, 10 GB/s a core up to 300: assumptions", f.cores)
	}
	for _, g := range f.gpus {
		card, n, err := countedCard(g)
		if err != nil {
			return usage(err)
		}
		t.Cards = append(t.Cards, slices.Repeat([]hw.Card{card}, min(n*f.count, hw.MaxDevices))...)
	}
	if err := f.join(&t); err != nil {
		return err
	}
	return c.writeTemplate(f, &t)
}

// join joins the cards of t, and hosts like it, as f says.
func (f *initFlags) join(t *hw.Template) error {
	t.Hosts, t.Network = f.hosts, f.network
	if len(t.Cards) == 0 {
		return nil
	}
	first := t.Cards[0]
	alike := !slices.ContainsFunc(t.Cards, func(c hw.Card) bool { return c.Name != first.Name })
	switched := first.Switched()
	switch {
	case f.links == "nvlink" && !alike:
		return usagef("--links nvlink: the cards of a host differ; a cable in the file says which of them a bridge joins")
	case f.links == "nvlink" && !switched:
		return usagef("--links nvlink: no switch of NVLink is known for %s; a cable in the file says what a bridge joins (docs/adding-a-machine.md)", first.Name)
	}
	t.NVLink = switched && alike && len(t.Cards) > 1 && f.links != "pcie" && (f.slot == "" || f.links == "nvlink")
	if n, k := f.network.NICs, len(t.Cards); f.hosts > 1 && n%k != 0 && k%n != 0 {
		return usagef("--network %s: %s cannot be shared out evenly among the %s of a host", f.between, words.Count(n, "NIC", "NICs"), words.Count(k, "GPU", "GPUs"))
	}
	return nil
}

// writeTemplate writes t, its cards in the slots that f names.
func (c *console) writeTemplate(f *initFlags, t *hw.Template) error {
	if f.slot != "" {
		for i := range t.Cards {
			t.Cards[i].PCIe = t.Cards[i].PCIe.Meet(f.pcie)
		}
	}
	switch {
	case max(1, f.hosts) > 1 && f.devices(t) > hw.MaxDevices:
		return usagef("--nodes %d: %d devices, want at most %d; fewer hosts stand for more where they are alike", f.hosts, f.devices(t), hw.MaxDevices)
	case f.hosts <= 1 && len(t.Cards) >= hw.MaxDevices:
		return usagef("--gpu: %d cards, want fewer than %d", len(t.Cards), hw.MaxDevices)
	case len(t.Cards) == 0 && t.CPU.Kind == "":
		return errors.New("neither a GPU nor the host's memory was found: name them with --gpu and --cpu")
	}
	return c.writeOutput(cmp.Or(f.out, "-"), t.Write)
}

// devices returns how many devices t has on all hosts.
func (f *initFlags) devices(t *hw.Template) int {
	n := len(t.Cards)
	if t.CPU.Kind != "" {
		n++
	}
	return n * max(1, f.hosts)
}

// countedCard reads "rtx3060" or "rtx3060*2".
func countedCard(s string) (hw.Card, int, error) {
	name, count, given := strings.Cut(s, "*")
	n := 1
	if given {
		var err error
		if n, err = strconv.Atoi(count); err != nil || n < 1 || n > hw.MaxDevices {
			return hw.Card{}, 0, fmt.Errorf("--gpu %s: want a card and how many, as rtx3060*2", s)
		}
	}
	card, err := hw.FindCard(name)
	return card, n, err
}

// spaced puts the space that quantities have between number and unit.
func spaced(s string) string {
	at := strings.LastIndexAny(s, "0123456789.") + 1
	return s[:at] + " " + strings.TrimSpace(s[at:])
}
