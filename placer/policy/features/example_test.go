package features_test

import (
	"fmt"

	"placer/placer/policy/features"
)

func ExampleConfig_NumColumns() {
	one := features.Config{Harmonics: 2}
	fmt.Println(one.NumColumns()-features.Config{}.NumColumns(), "columns of harmonics")
	// Output: 4 columns of harmonics
}
