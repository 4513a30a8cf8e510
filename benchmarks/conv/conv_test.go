package conv

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"optimus/compute/cpu/conv"
)

// TestResNet50 counts what the literature counts: 53 convolutions, 23,454,912
// weights and 4.09 billion products for one picture.
func TestResNet50(t *testing.T) {
	layers, weights, products := 0, 0, 0
	for _, l := range ResNet50() {
		layers += l.Count
		weights += l.Count * l.Shape.Weights()
		products += l.Count * l.Shape.Weights() * l.Shape.OutH() * l.Shape.OutW()
	}
	if layers != 53 || weights != 23454912 || math.Abs(float64(products)-4.09e9) > 0.005e9 {
		t.Errorf("%d convolutions, %d weights, %d products", layers, weights, products)
	}
}

// TestRun measures small layers of every kind. Where oneDNN is installed, that
// compares the results, too.
func TestRun(t *testing.T) {
	layers := []Layer{
		{conv.Shape{C: 3, H: 20, W: 24, O: 32, KH: 7, KW: 7, StrideH: 2, StrideW: 2, PadH: 3, PadW: 3, Groups: 1}, 1},
		{conv.Shape{C: 32, H: 9, W: 10, O: 48, KH: 1, KW: 1, StrideH: 2, StrideW: 2, Groups: 1}, 3},
		{conv.Shape{C: 32, H: 9, W: 10, O: 32, KH: 3, KW: 3, StrideH: 1, StrideW: 1, PadH: 1, PadW: 1, Groups: 8}, 1},
	}
	rep, err := Run(t.Context(), Options{Layers: layers, Batch: 2, Rounds: 3, Slice: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Results) != 3*len(layers)-1 {
		t.Fatalf("%d results, want three directions of each layer, but two of the first", len(rep.Results))
	}
	absent := rep.Absent != nil
	if absent != (rep.OneDNN == "") {
		t.Errorf("oneDNN is %q and absent because of %v", rep.OneDNN, rep.Absent)
	}
	for _, r := range rep.Results {
		median, best := r.Ours.Ratio(r.OneDNN)
		if r.Ours.Best <= 0 || r.Ours.Median < r.Ours.Best || r.Rate <= 0 || absent != (r.OneDNN == Times{}) || absent != (median*best == 0) {
			t.Errorf("%v of %v: %+v", r.Direction, r.Layer.Shape, r)
		}
	}
	ours, _ := rep.Total()
	var sum Times
	for _, d := range []Direction{Forward, BackwardData, BackwardWeights} {
		part, _ := rep.Total(d)
		sum = sum.plus(part, 1)
	}
	if ours != sum || ours.Best < 3*rep.Results[2].Ours.Best {
		t.Errorf("all directions together take %v, one by one %v", ours, sum)
	}
}

func TestBadOptions(t *testing.T) {
	if _, err := Run(t.Context(), Options{Rounds: -1}); err == nil || !strings.Contains(err.Error(), "must be positive") {
		t.Errorf("-1 rounds: error %v", err)
	}
	if _, err := Run(t.Context(), Options{Level: "avx3"}); err == nil || !strings.Contains(err.Error(), "avx3") {
		t.Errorf("level avx3: error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Options{Layers: ResNet50()[1:2]}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
