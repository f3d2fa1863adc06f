package jsonx_test

import (
	"fmt"

	"placer/internal/jsonx"
)

func Example() {
	read := func(doc string) (x int64, err error) {
		r := jsonx.New([]byte(doc))
		if err := r.Object([]string{"ops"}, 1, func(int) (err error) { x, err = r.Int(1, 1000); return err }); err != nil {
			return 0, err
		}
		return x, r.End()
	}
	fmt.Println(read(`{"ops": 12}`))
	fmt.Println(read("{\n  \"opps\": 12\n}"))
	// Output:
	// 12 <nil>
	// 0 line 2, column 3: unknown key "opps", want one of ops
}
