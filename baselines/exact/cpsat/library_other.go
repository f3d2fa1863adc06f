//go:build !((linux || darwin) && (amd64 || arm64))

package cpsat

import (
	"context"
	"errors"
)

// Library is an open libortools; this platform cannot open one.
type Library struct{}

var errPlatform = errors.New("libraries are not opened on this platform")

// Name returns nothing.
func (*Library) Name() string { return "" }

func open(string) (*Library, error) { return nil, errPlatform }

func (*Library) solve(context.Context, []byte, []byte) ([]byte, error) { return nil, errPlatform }
