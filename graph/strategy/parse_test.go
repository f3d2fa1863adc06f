package strategy

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, text := range []string{"one device", "recompute", "mb=4", "ddp=8", "ddp=8 ep", "ddp=8 ep=4", "zero-3=8 ep=2", "zero-2=4 ep=2 tp=2 sp mb=2", "ddp=2 ep 1f1b=2 tp=2 mb=2", "zero-1=2 tp=4 mb=8 recompute", "zero-3=8 mb=2", "tp=8 vocab sp mb=4 recompute=selective", "1f1b=2 tp=2 sp mb=2", "1f1b=4 mb=8", "gpipe=2 mb=2", "zero-2=2 interleaved=2 chunks=2 tp=2 mb=4"} {
		s, err := Parse(text)
		if err != nil {
			t.Error(err)
		} else if s.String() != text {
			t.Errorf("%q is read as %q", text, s)
		}
	}
	for text, want := range map[string]string{
		"ddp":                           `"ddp" is not of the form name=number`,
		"tp=0":                          `"tp=0" is not of the form name=number`,
		"fsdp=8":                        `unknown part "fsdp"`,
		"free=4 mb=8":                   `unknown part "free"`,
		"ddp=2 zero-1=4":                "data is said twice",
		"1f1b=2 gpipe=2":                "pipeline is said twice",
		"interleaved=2 mb=2":            "want at least 2",
		"one device recompute":          `"one" is not of the form`,
		"sp mb=2":                       "sequences are split among the ranks of split products",
		"ep mb=2":                       "experts are shared out among replicas",
		"ddp=8 ep=3":                    "a divisor of it",
		"ddp=8 ep=0":                    `"ep=0" is not of the form`,
		"ddp=8 ep ep=4":                 "ep is said twice",
		"ddp=2 vocab":                   "want tp of at least 2",
		"recompute=some":                `"recompute=some" is not of the form`,
		"recompute recompute=selective": "recompute is said twice",
	} {
		if s, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", text, s, err, want)
		}
	}
}
