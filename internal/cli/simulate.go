package cli

import (
	"github.com/spf13/cobra"
)

func (c *console) simulateCommand() *cobra.Command {
	return &cobra.Command{Use: "simulate", Short: "Simulate a plan"}
}
