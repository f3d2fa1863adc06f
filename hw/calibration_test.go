package hw

import (
	"bytes"
	"strings"
	"testing"
)

const calibratedBox = `{"format": "placer machine 1", "name": "box",
 "models": {"X": {"kind": "gpu", "arch": "sm_90", "capacity": "16 GB", "memory_bandwidth": "732 GB/s", "peak": {"f32": "9.3 TFLOP/s"}, "launch": "5 us", "sms": 56, "source": "",
  "calibration": CALIBRATION}},
 "devices": [{"name": "gpu:0", "model": "X"}]}`

const fittedConstants = `{"source": "fitted",
 "memory": {"bandwidth": 0.91, "ramp": "1.2345678901234 us", "patterns": {"reduction": 0.5, "update": 1, "move": {"fraction": 0.6, "elements_per_ns": 5.3, "wait": "0.3 us"}}},
 "streams": {"bandwidth": 0.81, "ramp": "0.4 us", "fill": "0.6 us"},
 "gemm": {"bf16": {"peak": 0.97, "feed": 12.3456789, "ends": "1.5 us", "tail": 0, "fixed": "0 s", "memory": 0.7, "odd": 4.5}}}`

func readCalibrated(calibration string) (*Machine, error) {
	return Read(strings.NewReader(strings.Replace(calibratedBox, "CALIBRATION", calibration, 1)))
}

// TestCalibrationRoundTrip: constants survive writing and reading, count in the
// hash and among a device's figures; their source does not count in the hash.
func TestCalibrationRoundTrip(t *testing.T) {
	m, err := readCalibrated(fittedConstants)
	if err != nil {
		t.Fatal(err)
	}
	c := m.Devices[0].Calibration
	if c.Memory.Ramp != 1.2345678901234e-6 || c.Memory.Patterns["reduction"] != (PatternConstants{Fraction: 0.5}) || c.Memory.Patterns["move"] != (PatternConstants{0.6, 5.3, 0.3e-6}) || c.GEMM["bf16"].Feed != 12.3456789 || c.Streams.Fill != 0.6e-6 || c.GEMM["bf16"].Memory != 0.7 || c.GEMM["bf16"].Odd != 4.5 || c.Source != "fitted" {
		t.Fatalf("read %+v, %+v", c, c.Memory)
	}
	var text bytes.Buffer
	if err := m.Write(&text); err != nil {
		t.Fatal(err)
	}
	back, err := Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	if back.Hash() != m.Hash() || !back.Devices[0].SameFigures(&m.Devices[0]) {
		t.Errorf("%+v was read back as %+v", c, back.Devices[0].Calibration)
	}
	seen := map[string]string{}
	for _, x := range []string{fittedConstants, `{"source": ""}`, `{"source": "", "gemm": {}}`,
		strings.Replace(fittedConstants, "0.91", "0.92", 1), strings.Replace(fittedConstants, "bf16", "f16", 1), strings.Replace(fittedConstants, `"update": 1`, `"update": 0.9`, 1),
		strings.Replace(fittedConstants, `"tail": 0`, `"tail": 1`, 1), strings.Replace(fittedConstants, "1.2345678901234 us", "1 us", 1), strings.Replace(fittedConstants, "0.6 us", "0.7 us", 1),
		strings.Replace(fittedConstants, `"memory": 0.7`, `"memory": 0.8`, 1), strings.Replace(fittedConstants, `"odd": 4.5`, `"odd": 5`, 1),
		strings.Replace(fittedConstants, `"fraction": 0.6`, `"fraction": 0.7`, 1), strings.Replace(fittedConstants, "5.3", "5.4", 1), strings.Replace(fittedConstants, "0.3 us", "0.2 us", 1),
	} {
		o, err := readCalibrated(x)
		if err != nil {
			t.Fatalf("%s: %v", x, err)
		}
		if before, ok := seen[o.Hash()]; ok && x != `{"source": "", "gemm": {}}` { // says as little as the one before
			t.Errorf("%s and %s have one hash", x, before)
		}
		seen[o.Hash()] = x
	}
	other, err := readCalibrated(strings.Replace(fittedConstants, `"fitted"`, `"elsewhere"`, 1))
	if err != nil || other.Hash() != m.Hash() || other.Devices[0].SameFigures(&m.Devices[0]) {
		t.Errorf("%v: another source: hash %v, same figures %v", err, other.Hash() == m.Hash(), other.Devices[0].SameFigures(&m.Devices[0]))
	}
	none, err := Read(strings.NewReader(strings.Replace(calibratedBox, `,
  "calibration": CALIBRATION`, "", 1)))
	if err != nil || seen[none.Hash()] != "" {
		t.Errorf("%v: a machine without constants has the hash of one with", err)
	}
}

func TestCalibrationErrors(t *testing.T) {
	for want, change := range map[string][2]string{
		"calibration.memory.bandwidth: is the number 1.2, want 0 to 1": {"0.91", "1.2"},
		"is 0, want above":                         {"0.91", "0"},
		"unknown key \"gather3\"":                  {"reduction", "gather3"},
		"unknown key \"bf17\"":                     {"bf16", "bf17"},
		"key \"fraction\" is missing":              {`"fraction": 0.6, `, ""},
		"want 0 to 10000":                          {"5.3", "-1"},
		"key \"fixed\" is missing":                 {`, "fixed": "0 s"`, ""},
		"want a number":                            {"12.3456789", `"12"`},
		"want a string with a number and its unit": {`"1.5 us"`, "1.5"},
		"is 2 s, want 0 to 1 s":                    {"1.5 us", "2 s"},
		"calibration.streams.fill: is 2 s":         {"0.6 us", "2 s"},
		"odd: is the number 0.5, want 1 to 100":    {`"odd": 4.5`, `"odd": 0.5`},
		"memory: is the number 1.7, want 0 to 1":   {`"memory": 0.7`, `"memory": 1.7`},
		"key \"source\" is missing":                {`"source": "fitted",`, ""},
		"key \"ramp\" is missing":                  {`"ramp": "1.2345678901234 us",`, ""},
	} {
		_, err := readCalibrated(strings.Replace(fittedConstants, change[0], change[1], 1))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", change, err, want)
		}
	}
}
