package nn_test

import (
	"testing"

	"optimus/compute/optim"
	"optimus/nn"
)

func TestXavier(t *testing.T) {
	if got, want := nn.He(50), (optim.Init{Kind: optim.Normal, Scale: 0.2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := nn.Xavier(optim.Uniform, 16, 4), (optim.Init{Kind: optim.Uniform, Scale: 0.5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
