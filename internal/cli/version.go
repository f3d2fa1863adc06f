package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"placer/internal/jsonx"
	"placer/internal/report"
)

func (c *console) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of placer",
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if asJSON {
				return jsonx.Write(c.out, v)
			}
			_, err := fmt.Fprintf(c.out, "placer %s (commit %s, %s, %s)\n", v.Version, v.Commit, v.Go, v.Platform)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// buildVersion reads what the Go tool has built into the program.
func buildVersion() report.Version {
	v := report.Version{Format: report.VersionFormat, Version: "devel", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
