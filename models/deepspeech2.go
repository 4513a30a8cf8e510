package models

import (
	"fmt"

	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/nn"
)

// deepSpeech2 writes down what is said (Amodei et al., "Deep Speech 2", 2016), with
// the layers of MXNet's example speech_recognition: two convolutions over time and
// pitch, layers of GRUs in both directions, a score for each letter, and the CTC loss.
//
// The paper's 38 M parameters fit no configuration of that example. Three layers of 900
// cells in each direction make 37,984,533 in 56 blocks: the convolutions 14,432 and
// 236,544 with 32 + 32 for each norm; each direction of a layer over n values
// 1800·n + 1800, 1,620,000 + 1800 for two gates and 900·n + 900, 810,000 + 900 for the
// candidate; the classifier 52,200 + 29.
//
// Norms between the recurrent layers, which the example can do without, are left out.
// The norms of the convolutions count padding behind shorter recordings, as the
// example's do. The learning rate stays as it is, where the example divides it by 1.1
// after each epoch.
func deepSpeech2() Workload {
	w := speechRecognition(3, 900, 32)
	w.tiny = func() Workload {
		t := shrunk(speechRecognition(1, 64, 4), 15, 16)
		t.Optimizer = optim.Default(optim.Adam)
		t.Optimizer.LR = 0.003
		return t
	}
	return w
}

// The longest recordings of LibriSpeech have 35 s, and their texts fewer letters.
const (
	longestSpeech     = 3500
	longestTranscript = 600
)

func speechRecognition(layers, cells, filters int) Workload {
	optimizer := optim.Default(optim.SGD)
	optimizer.LR, optimizer.Clip = 0.0003, 100
	return Workload{
		Name: "deepspeech2", Type: "RNN", Application: "speech recognition", Dataset: "LibriSpeech", Examples: 45000,
		Open: func(dir string, o Options) (*data.Set, error) {
			return data.OpenLibriSpeech(dir, data.Options{Seed: o.Seed, Skip: o.Skip})
		},
		Generate: func(o Options) (*data.Set, error) { return data.GenerateLibriSpeech(defaultTo(o.N, 5000), o.Seed) },
		Program: func(s *data.Set) (*compute.Program, error) {
			ok := s.Pitches > 0 && s.SequenceLength > 0 && s.Letters > 0
			if err := want(ok, "deepspeech2", s, "recordings and their transcripts"); err != nil {
				return nil, err
			}
			return speechLayers(layers, cells, filters, speechSizes{s.SequenceLength, s.Pitches, s.Letters, len(s.Vocabulary)})
		},
		Full: func() (*compute.Program, error) {
			return speechLayers(layers, cells, filters, speechSizes{longestSpeech, 161, longestTranscript, 29})
		},
		Optimizer: optimizer, Batch: 12, Epochs: 70,
	}
}

// speechSizes are the most steps of a recording, its pitches, the most letters of a
// transcript, and how many letters there are, with the blank, which is 0.
type speechSizes struct{ steps, pitches, letters, alphabet int }

func speechLayers(layers, cells, filters int, s speechSizes) (*compute.Program, error) {
	const space = 1
	n := nn.New("deepspeech2")
	time, text := n.Time("windows", s.steps), n.Time("letters", s.letters)
	lengths := n.Lengths("length", time)
	x := n.FloatsOver(time, "spectrogram", 1, 1, s.pitches)
	for i, w := range []compute.Window{{KH: 11, KW: 41, StrideH: 2, StrideW: 2}, {KH: 11, KW: 21, StrideH: 1, StrideW: 2}} {
		c := nn.Conv{Filters: filters, Window: w, NoBias: true, Init: nn.He(w.KH * w.KW * x.Shape[0])}
		x = n.ReLU(n.BatchNorm(fmt.Sprint("norm", i+1), n.Conv2D(fmt.Sprint("conv", i+1), x, c)))
	}
	x = n.Frames(x)
	for i := range layers {
		c := nn.Recurrent{Units: cells, Lengths: &lengths, Split: true, Init: glorot(x.Size(), cells)}
		ahead := n.GRU(fmt.Sprintf("gru%d.ahead", i+1), x, c)
		c.Reverse = true
		x = n.Concat(ahead, n.GRU(fmt.Sprintf("gru%d.back", i+1), x, c))
	}
	x = n.Dense("fc", x, s.alphabet, glorot(x.Size(), s.alphabet))
	n.CTC(x, nn.Transcript{Labels: n.IntsOver(text, "text", 1, s.alphabet), Counts: n.Lengths("text length", text), Lengths: &lengths, Space: space})
	return n.Program()
}
