package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"placer/internal/bench"
	"placer/internal/spell"
)

// flagError says what is wrong with a flag of cmd: of an unknown one the flags that it may
// be a slip for, of a value that cannot be read the form that it has to have.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var said bench.ConfigError // by the flag's own value
	switch {
	case errors.As(err, &said):
		return said
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		return usagef("unknown flag --%s%s", unknown.GetSpecifiedName(), meantFlag(cmd, unknown.GetSpecifiedName()))
	case errors.As(err, &unknown):
		return usagef("unknown flag -%s; %s --help lists them", unknown.GetSpecifiedName(), cmd.CommandPath())
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		if want := valueForms[f.Value.Type()]; want != "" {
			return usagef("--%s %s: want %s", f.Name, strings.TrimSpace(invalid.GetValue()), want)
		}
	}
	return usage(err)
}

// valueForms says how the value of a flag of each type is written.
var valueForms = map[string]string{
	"bool":          "true or false",
	"int":           "a whole number",
	"uint64":        "a whole number, 0 or more",
	"float64":       "a number",
	"duration":      "a time with its unit, as 30s or 2m",
	"intSlice":      "whole numbers, as 1,2,4",
	"stringToInt64": "NAME=N, as batch=32",
}

// meantFlag says which flags of cmd name may be a slip for, as the end of a sentence.
func meantFlag(cmd *cobra.Command, name string) string {
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	near := spell.Near(name, names)
	if len(near) == 0 {
		return "; " + cmd.CommandPath() + " --help lists them"
	}
	return ", did you mean --" + strings.Join(near, " or --") + "?"
}
