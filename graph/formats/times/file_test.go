package times_test

import (
	"bytes"
	"reflect"
	"testing"

	"placer/graph/formats/times"
)

// FuzzRead: a file either is refused or is read again as what it was when written.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format": "placer times 1", "graph": "h", "source": "s", "bandwidth": 1e9, "latency": 0, "models": [{"name": "V100", "count": 2, "memory": "16 GB", "seconds": [0.003, null]}]}`))
	f.Add([]byte(`{"format": "placer times 1", "graph": "h", "source": "s", "bandwidth": 1e9, "latency": 1e-6, "uncontended": true, "issue_s": 0.1, "transfer_s": [1, 2], "models": [{"name": "c", "cpu": true, "count": 1, "memory": "1 B", "seconds": []}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := times.Read(data, "t")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := x.Write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := times.Read(b.Bytes(), "t")
		if err != nil {
			t.Fatalf("%v: %s", err, b.Bytes())
		}
		var c bytes.Buffer
		if err := again.Write(&c); err != nil || !bytes.Equal(b.Bytes(), c.Bytes()) || len(again.Models) != len(x.Models) || x.Issue != again.Issue || !reflect.DeepEqual(x.Transfer, again.Transfer) {
			t.Errorf("%s became %s, %v", b.Bytes(), c.Bytes(), err)
		}
	})
}
