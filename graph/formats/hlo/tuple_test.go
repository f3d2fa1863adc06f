package hlo

import "testing"

// Arguments that are tuples, empty ones among them, are given back as any others are: nothing
// is known of the places of their parts.
func TestTuplesAsArguments(t *testing.T) {
	for _, text := range []string{
		"HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\nENTRY e {\n p = () parameter(0)\n ROOT t = () tuple()\n}\n",
		"HloModule m, input_output_alias={ {0}: (0, {0}, may-alias) }, buffer_donor={ (0, {1}) }\nENTRY e {\n p = (f32[4], f32[4]) parameter(0)\n a = f32[4] get-tuple-element(p), index=0\n b = f32[4] get-tuple-element(p), index=1\n c = f32[4] add(a, b)\n ROOT t = (f32[4]) tuple(c)\n}\n",
		"HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {7}: (9, {}, may-alias) }\nENTRY e {\n p = () parameter(0)\n q = f32[4] parameter(1)\n c = f32[4] add(q, q)\n ROOT t = (f32[4]) tuple(c)\n}\n",
	} {
		if _, _, err := Import([]byte(text), "f", nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
