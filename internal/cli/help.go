package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is how many columns the lines of a help take at most.
const helpWidth = 100

// section is a part of a command's flags, under a heading of its help.
type section struct {
	title string
	flags *pflag.FlagSet
}

// addSection adds the flags that add adds.
func addSection(cmd *cobra.Command, to *[]section, title string, add func(*pflag.FlagSet)) {
	fl := pflag.NewFlagSet(title, pflag.ContinueOnError)
	fl.SortFlags = false
	add(fl)
	cmd.Flags().AddFlagSet(fl)
	*to = append(*to, section{title, fl})
}

// helpBySection makes the help of cmd list its flags by section.
func helpBySection(cmd *cobra.Command, sections []section) {
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		var text strings.Builder
		fmt.Fprintf(&text, "%s\n%s\n", cmd.Long, cmd.Example)
		for _, s := range append(sections, section{"Everywhere", cmd.InheritedFlags()}) {
			fmt.Fprintf(&text, "\n%s:\n%s", s.title, s.flags.FlagUsages())
		}
		fmt.Fprint(cmd.OutOrStdout(), text.String())
	})
}
