//go:build !linux || !(amd64 || arm64)

package gemm

import (
	"errors"
	"runtime"
)

type library struct{ version, core string }

func openBLAS(string, string) (*library, error) {
	return nil, errors.New("load OpenBLAS: not supported on " + runtime.GOOS + "/" + runtime.GOARCH + "; compare on linux/amd64 or linux/arm64")
}

func (*library) product(Shape, []float32, int, []float32, int, []float32) func() { return nil }

func (*library) close() error { return nil }
