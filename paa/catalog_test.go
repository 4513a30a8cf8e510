package paa

import (
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestCatalog(t *testing.T) {
	// Blocks and parameters as published for the models; for seq2seq and deepspeech2, whose exact configuration is not
	// known, those of the configuration chosen.
	tests := []struct {
		name               string
		blocks, parameters int
	}{
		{"resnext-110", 338, 1_730_976},
		{"resnet-50", 157, 25_549_486},
		{"inception-bn", 278, 11_295_240},
		{"kaggle", 16, 1_365_561},
		{"cnn-rand", 9, 300*18764 + 360_902},
		{"dssm", 1, 1_500_000},
		{"rnn-lstm", 11, 4_653_200},
		{"seq2seq", 23, 9_090_464},
		{"deepspeech2", 56, 37_984_533},
		{"deepspeech2-default", 24, 26_056_253},
		{"vgg-11", 22, 132_863_336},
		{"vgg-16", 32, 138_357_544},
		{"resnext-101", 316, 44_177_710},
	}
	models := Catalog()
	if len(models) != len(tests) {
		t.Fatalf("%d models, want %d", len(models), len(tests))
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := models[i]
			if m.Name != tt.name || len(m.Sizes) != tt.blocks || m.Parameters() != tt.parameters {
				t.Errorf("got %s, %d blocks, %d parameters; want %s, %d, %d",
					m.Name, len(m.Sizes), m.Parameters(), tt.name, tt.blocks, tt.parameters)
			}
			if m.Description == "" {
				t.Error("no description")
			}
		})
	}
	if n := inceptionBN(256); sumOf(n) != 10_532_640 {
		t.Errorf("inception-bn with 256 classes has %d parameters, want 10532640", sumOf(n))
	}
}

func sumOf(sizes []int) int { return Model{Sizes: sizes}.Parameters() }

// TestBlockOrder compares with the lists that are published in full.
func TestBlockOrder(t *testing.T) {
	direction := []int{2365440, 3520, 6195200, 3520, 1182720, 1760, 3097600, 1760}
	speech := append([]int{14432, 32, 32, 236544, 32, 32}, direction...)
	speech = append(append(speech, direction...), 102080, 29)
	tests := map[string][]int{
		"kaggle": {2400, 32, 51200, 64, 36864, 64, 36864, 64, 73728, 128, 294912, 256, 589824, 256, 278784, 121},
		"vgg-16": {1728, 64, 36864, 64, 73728, 128, 147456, 128, 294912, 256, 589824, 256, 589824, 256, 1179648, 512, 2359296, 512,
			2359296, 512, 2359296, 512, 2359296, 512, 2359296, 512, 102760448, 4096, 16777216, 4096, 4096000, 1000},
		"rnn-lstm":            {2000000, 160000, 160000, 800, 800, 160000, 160000, 800, 800, 2000000, 10000},
		"cnn-rand":            {18764 * 300, 90000, 100, 120000, 100, 150000, 100, 600, 2},
		"deepspeech2-default": speech,
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(want, mustLookup(t, name).Sizes); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	tests := []struct{ name, suggests string }{
		{"resnet50", `did you mean "resnet-50"?`},
		{"VGG16", `did you mean "vgg-16"?`},
		{"deepspeech", `did you mean "deepspeech2"?`},
		{"", "known: resnext-110, resnet-50,"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Lookup(tt.name); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), tt.suggests) {
				t.Errorf("got %v, want ErrModel with %q", err, tt.suggests)
			}
		})
	}
	// A caller that changes a list must not change the catalog.
	m := mustLookup(t, "dssm")
	m.Sizes[0] = 1
	if n := mustLookup(t, "dssm").Parameters(); n != 1_500_000 {
		t.Errorf("dssm has %d parameters after another caller changed its list", n)
	}
}
