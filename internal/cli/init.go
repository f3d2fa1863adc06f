package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"placer/hw"
	"placer/hw/gpu"
	"placer/hw/nvml"
	"placer/units"
)

// Assumed of a host that is named by its memory alone.
const hostCores = 16

func (c *console) initCommand() *cobra.Command {
	var gpus []string
	var memory, slot, name, out string
	var cores int
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a machine file, from this host or by the names of cards",
		Long: "init writes a machine file to go on with. With --gpu it is about the cards named, with\n" +
			"the figures of their data sheets; a card may be repeated as rtx3060*2. Without, it is\n" +
			"about this host: what NVIDIA's management library tells, or else lspci, and /proc. Every\n" +
			"card is cabled to the host over PCIe. What is assumed stands in the file beside the\n" +
			"figure; 'placer bench hw' measures.",
		Example: "  placer machines init --gpu rtx4090,rtx3060 --cpu 128GB --pcie 4 -o box.json\n" +
			"  placer machines init -o here.json",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cores < 1:
				return usagef("--cores %d: want at least 1", cores)
			case cmd.Flags().Changed("cores") && memory == "":
				return usagef("--cores goes with --cpu, which names the CPU's memory")
			}
			t := hw.Template{Name: name}
			host, note := c.hardware.host(), ""
			if cmd.Flags().Changed("gpu") || cmd.Flags().Changed("cpu") {
				host, note = nvml.Host{}, "Written by placer machines init from names: data sheets, nothing is measured."
			}
			if memory != "" {
				b, err := units.ParseBytes(spaced(memory))
				if err != nil || b < 1<<30 || b > 1<<50 {
					return usagef("--cpu %s: want the host's memory, as 128GB", memory)
				}
				host = nvml.Host{Memory: b, Cores: cores, Arch: "avx2"}
			}
			if len(gpus) == 0 && memory == "" {
				inv, err := c.hardware.detect()
				switch {
				case err == nil:
					m, err := inv.Machine(name, host)
					if err != nil {
						return err
					}
					return c.writeOutput(cmp.Or(out, "-"), m.Write)
				case !errors.Is(err, nvml.ErrNoLibrary) && !errors.Is(err, gpu.ErrNoDevice):
					return err
				}
				note = "Written by placer machines init on this host, from lspci and /proc: data sheets, nothing is measured."
				found, unknown := hw.Named(c.hardware.pci())
				t.Cards = found
				for _, line := range unknown {
					c.note("no figures are known of %s", line)
				}
				if len(found) == 0 {
					c.note("no GPU was found here: --gpu names cards, as --gpu rtx4090,rtx3060*2")
				}
			}
			for _, g := range gpus {
				card, n, err := countedCard(g)
				if err != nil {
					return usage(err)
				}
				t.Cards = append(t.Cards, slices.Repeat([]hw.Card{card}, n)...)
			}
			if slot != "" {
				s, err := hw.ParseSlot(slot)
				if err != nil {
					return usagef("--pcie: %v", err)
				}
				for i := range t.Cards {
					t.Cards[i].PCIe = t.Cards[i].PCIe.Meet(s)
				}
			}
			if host.Cores > 0 {
				t.CPU = host.Device()
				if memory != "" {
					t.CPU.Source = fmt.Sprintf("memory and %d cores as named; 2.5 GHz, two AVX2 units a core, 10 GB/s a core up to 300: assumptions", cores)
				}
			}
			t.Note = note
			if len(t.Cards) >= hw.MaxDevices {
				return usagef("--gpu: %d cards, want fewer than %d", len(t.Cards), hw.MaxDevices)
			}
			if len(t.Cards) == 0 && t.CPU.Kind == "" {
				return errors.New("neither a GPU nor the host's memory was found: name them with --gpu and --cpu")
			}
			return c.writeOutput(cmp.Or(out, "-"), t.Write)
		},
	}
	cmd.Flags().StringSliceVar(&gpus, "gpu", nil, "cards by name, in the order of their slots; placer machines --cards lists them")
	cmd.Flags().StringVar(&memory, "cpu", "", "make the host's CPU a device with this memory, as 128GB")
	cmd.Flags().IntVar(&cores, "cores", hostCores, "cores of the CPU that --cpu names")
	cmd.Flags().StringVar(&slot, "pcie", "", "PCIe generation of the host's slots, and lanes, as 4 or 4x8 (default each card's own)")
	cmd.Flags().StringVar(&name, "name", "box", "name of the machine")
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the machine file there; stdout without it")
	return cmd
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
