package formats

import (
	"bytes"
	"encoding/json"
	"io"
)

// jaxFormat names our own form for JAX, which has none: a program walks its parameters
// by path and puts each on the device of the closest ancestor.
const jaxFormat = "placer jax 1"

func writeJAX(w io.Writer, s *Split) error {
	return writeMap(w, "{\"format\": \""+jaxFormat+"\",\n\"device\": ", s, "}")
}

func isJAX(data []byte) bool { return bytes.Contains(data[:min(len(data), 64)], []byte(jaxFormat)) }

func readJAX(data []byte, s *Split) error {
	var f struct {
		Device json.RawMessage `json:"device"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	return readDeviceMap(f.Device, s)
}
