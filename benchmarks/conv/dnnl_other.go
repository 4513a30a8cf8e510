//go:build !linux || !(amd64 || arm64)

package conv

import (
	"errors"
	"runtime"

	"optimus/compute/cpu/conv"
)

type library struct{ name string }

type peer struct {
	name string
	run  func()
}

func oneDNN() (*library, error) {
	return nil, errors.New("load oneDNN: not supported on " + runtime.GOOS + "/" + runtime.GOARCH + "; compare on linux/amd64 or linux/arm64")
}

func (*library) prepare(conv.Shape, int, Direction, []float32, []float32, []float32) (*peer, error) {
	return nil, errors.New("no oneDNN")
}

func (*peer) result() ([]float32, error) { return nil, errors.New("no oneDNN") }

func (*library) release() {}
