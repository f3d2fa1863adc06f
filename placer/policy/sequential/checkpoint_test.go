package sequential

import "testing"

func TestDifferences(t *testing.T) {
	const was, is = `{"families":["rnnlm"],"seed":1,"steps":2}`, `{"families":["gnmt"],"seed":1,"steps":3}`
	const want = `families ["rnnlm"], not ["gnmt"]; steps 2, not 3`
	if got := differences([]byte(was), []byte(is)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
