package models_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/internal/shared"
	"optimus/models"
	"optimus/paa"
)

// images are the workloads of Table 1 that classify pictures.
func images() []string { return []string{"resnext-110", "resnet-50", "inception-bn", "kaggle"} }

// TestImageBlocks compares the sizes of all blocks, in order, with the catalog,
// which was derived from the published lists without this package.
func TestImageBlocks(t *testing.T) {
	totals := map[string]int{"resnext-110": 1730976, "resnet-50": 25549486, "inception-bn": 11295240, "kaggle": 1365561}
	for _, name := range images() {
		p, err := lookup(t, name).Full()
		if err != nil {
			t.Fatal(err)
		}
		known, err := paa.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, b := range p.Params {
			sizes = append(sizes, b.Size())
			if b.Rows {
				t.Errorf("%s: block %s goes by rows", name, b.Name)
			}
		}
		if diff := cmp.Diff(known.Sizes, sizes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if p.Parameters() != totals[name] {
			t.Errorf("%s: %d parameters, want %d", name, p.Parameters(), totals[name])
		}
	}
}

// TestImageSettings pins what no block size tells: what a model sees of a picture,
// the norms' ε and fixed γ, where pools have borders.
func TestImageSettings(t *testing.T) {
	type settings struct {
		Side, Pad  int
		Mirror     bool
		Norms      map[float64]int // by ε
		Fixed      int             // norms of fixed γ
		Max, Mean  int             // pools
		Bordered   int             // of them with a border
		LastWindow int
		Dropout    float64
	}
	for name, want := range map[string]settings{
		"resnext-110":  {Side: 28, Pad: 4, Mirror: true, Norms: map[float64]int{2e-5: 112}, Fixed: 1, Mean: 1, LastWindow: 7},
		"resnet-50":    {Side: 224, Mirror: true, Norms: map[float64]int{2e-5: 51}, Fixed: 1, Max: 1, Mean: 1, Bordered: 1, LastWindow: 7},
		"inception-bn": {Side: 224, Mirror: true, Norms: map[float64]int{1e-5 + 1e-10: 69}, Max: 5, Mean: 8, Bordered: 10, LastWindow: 7},
		"kaggle":       {Side: 48, Mirror: true, Max: 2, Mean: 1, LastWindow: 9, Dropout: 0.25},
	} {
		p, err := lookup(t, name).Full()
		if err != nil {
			t.Fatal(err)
		}
		var got settings
		for _, step := range p.Forward {
			switch op := step.Op.(type) {
			case *compute.Crop:
				got.Side, got.Pad, got.Mirror = op.To.H, op.Pad, op.Mirror
			case *compute.BatchNorm:
				if got.Norms == nil {
					got.Norms = map[float64]int{}
				}
				got.Norms[op.Eps]++
				if op.FixGamma {
					got.Fixed++
				}
			case *compute.Pool:
				got.LastWindow = op.KH
				if op.Avg {
					got.Mean++
				} else {
					got.Max++
				}
				if op.PadH > 0 {
					got.Bordered++
				}
			case *compute.Dropout:
				got.Dropout = op.Rate
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, name := range append(append(images(), "cnn-rand"), slices.Collect(maps.Keys(sequences()))...) {
		w := lookup(t, name)
		if full, err := w.At(""); err != nil || full.Batch != w.Batch {
			t.Errorf("%s: %v", name, err)
		}
		tiny, err := w.At(models.Tiny)
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.Full()
		if err != nil {
			t.Fatal(err)
		}
		b, err := tiny.Full()
		if err != nil {
			t.Fatal(err)
		}
		if b.Parameters()*10 > a.Parameters() || b.Name != a.Name || tiny.Epochs >= w.Epochs || tiny.Schedule(1, 1).Validate() != nil {
			t.Errorf("%s: %d parameters, tiny %d of %s", name, a.Parameters(), b.Parameters(), b.Name)
		}
		if _, err := w.At("huge"); err == nil || !strings.Contains(err.Error(), `"tiny"`) {
			t.Errorf("%s: error %v, want one that tells the sizes", name, err)
		}
	}
	if _, err := lookup(t, "cifar-small").At(models.Tiny); err == nil || !strings.Contains(err.Error(), "cifar-small") {
		t.Errorf("error %v, want one that names the workload", err)
	}
}

func TestSchedule(t *testing.T) {
	w := lookup(t, "resnext-110")
	o := w.Schedule(50000, 128) // 391 steps an epoch
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	for step, want := range map[int64]float64{1: 0.05, 200 * 391: 0.05, 200*391 + 1: 0.005, 250 * 391: 0.005, 250*391 + 1: 0.0005} {
		if got := o.Rate(step); got < want*0.999 || got > want*1.001 {
			t.Errorf("step %d: rate %v, want %v", step, got, want)
		}
	}
	if len(w.Optimizer.Steps) != 0 || len(lookup(t, "kaggle").Schedule(10, 3).Steps) != 0 {
		t.Error("the schedule changed the workload, or came out of nothing")
	}
}

// TestTinyOverfits: each model learns a handful of pictures by heart.
func TestTinyOverfits(t *testing.T) {
	for _, name := range images() {
		t.Run(name, func(t *testing.T) {
			tr := newTrainer(t, quick(t, name), generated(t, name, 24), 1)
			ids := []int{0, 1, 2, 3, 4, 5, 6, 7}
			first := tr.step(0, ids).Mean()
			last := first
			steps := 0
			for ; steps < 150 && last > first/5; steps++ {
				last = tr.step(steps+1, ids).Mean()
			}
			t.Logf("loss %.3f, after %d steps %.3f", first, steps, last)
			if last > first/5 {
				t.Errorf("loss %.3f, after %d steps %.3f", first, steps, last)
			}
		})
	}
}

// TestTinyLearnsGenerated: what is learned of generated pictures holds for others.
func TestTinyLearnsGenerated(t *testing.T) {
	long(t)
	for _, name := range []string{"resnet-50", "inception-bn", "kaggle"} {
		t.Run(name, func(t *testing.T) {
			newTrainer(t, quick(t, name), generated(t, name, 600), 1).reach(0.4, 12)
		})
	}
}

// quick is tiny with Adam: without norms, SGD takes long to get going.
func quick(t *testing.T, name string) models.Workload {
	t.Helper()
	w := tiny(t, name)
	w.Optimizer = optim.Default(optim.Adam)
	w.Optimizer.LR = 0.001
	return w
}

func tiny(t *testing.T, name string) models.Workload {
	t.Helper()
	w, err := lookup(t, name).At(models.Tiny)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func generated(t *testing.T, name string, n int) *data.Set {
	t.Helper()
	set, err := tiny(t, name).Generate(models.Options{Seed: 3, N: n})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestTinyOnReal takes a step on real pictures, in the sets' own folders.
func TestTinyOnReal(t *testing.T) {
	for name, folder := range map[string]string{"resnext-110": "cifar10", "resnet-50": "imagenet", "inception-bn": "caltech256", "kaggle": "ndsb1"} {
		w := tiny(t, name)
		set, err := w.Open(shared.Dir(t, "sets", folder), models.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		tr := newTrainer(t, w, set, 1)
		if r := tr.step(0, []int{0, 7, 12, 20}); r.Weight != 4 || !(r.Loss > 0) || len(set.Classes) < 4 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
