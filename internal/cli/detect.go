package cli

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/cpu"

	"placer/hw/nvml"
	"placer/internal/report"
	"placer/units"
)

func (c *console) detectCommand() *cobra.Command {
	var out, name string
	var withCPU bool
	cmd := &cobra.Command{
		Use:   "detect",
		Short: "Describe this host's GPUs as a machine",
		Long: "detect asks NVIDIA's management library for the GPUs of this host, their clocks,\n" +
			"memory, PCIe and NVLink, and describes them as a machine, with figures of the data\n" +
			"sheets at these clocks. 'placer bench hw' measures instead. Without a GPU it exits\n" +
			"with code 4.",
		RunE: func(*cobra.Command, []string) error {
			inv, err := c.hardware.detect()
			if err != nil {
				return err
			}
			var host nvml.Host
			if withCPU {
				host = thisHost()
			}
			m, err := inv.Machine(name, host)
			if err != nil {
				return err
			}
			if out == "" {
				doc := report.Machines{Format: report.MachinesFormat, Machines: []report.MachineSummary{report.SummariseMachine(m)}}
				return c.print(false, &doc)
			}
			return c.writeOutput(out, m.Write)
		},
	}
	alias(cmd.Flags(), "out", "output")
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the machine file there; - prints it")
	cmd.Flags().StringVar(&name, "name", "here", "name of the machine")
	cmd.Flags().BoolVar(&withCPU, "cpu", true, "make the host's CPU a device too")
	return cmd
}

// thisHost describes the processor; it has no cores where the system does not
// tell its memory.
func thisHost() nvml.Host {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return nvml.Host{}
	}
	h := nvml.Host{Arch: "avx2"}
	if cpu.X86.HasAVX512F {
		h.Arch = "avx512"
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) >= 2 && f[0] == "MemTotal:" {
			if kib, err := strconv.ParseInt(f[1], 10, 64); err == nil && kib > 0 {
				h.Memory, h.Cores = units.Bytes(kib)<<10, runtime.NumCPU()
			}
		}
	}
	return h
}

// noArguments refuses what is no flag.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && cmd.HasAvailableSubCommands() {
		return notACommand(cmd, args[0])
	}
	if len(args) > 0 {
		return usagef("%s takes no arguments, got %q: inputs are flags", cmd.Name(), args[0])
	}
	return nil
}
