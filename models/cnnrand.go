package models

import (
	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/nn"
)

// cnnRand is CNN-rand on MR: Kim, "Convolutional neural networks for sentence
// classification" (EMNLP 2014), as MXNet's example trains it, without dropout.
//
// With a vocabulary of V words it has 9 blocks and 300·V + 360,902 parameters: the
// embedding [V,300] (by rows); three convolutions over 3, 4 and 5 words, 100
// filters each: 90,000 + 100, 120,000 + 100, 150,000 + 100; the classifier 600 + 2.
func cnnRand() Workload {
	w := sentences(300, 100, 18764)
	w.tiny = func() Workload {
		t := shrunk(sentences(32, 16, 4000), 12, 50)
		t.Optimizer.LR = 0.002
		return t
	}
	return w
}

// sentences has words of so many values and so many filters of each length; its
// full data set so many words.
func sentences(width, filters, vocabulary int) Workload {
	optimizer := optim.Default(optim.RMSProp)
	optimizer.LR = 0.0005
	return Workload{
		Name: "cnn-rand", Type: "CNN", Application: "sentence classification", Dataset: "MR", Examples: 10662,
		Open:     func(dir string, o Options) (*data.Set, error) { return data.OpenMR(dir, data.Options{Seed: o.Seed}) },
		Generate: func(o Options) (*data.Set, error) { return data.GenerateMR(defaultTo(o.N, 10662), o.Seed) },
		Program: func(s *data.Set) (*compute.Program, error) {
			ok := len(s.Classes) > 1 && len(s.Vocabulary) > 0 && s.SequenceLength >= 5
			if err := want(ok, "cnn-rand", s, "classes, a vocabulary and sentences of at least 5 words"); err != nil {
				return nil, err
			}
			return textCNN(width, filters, len(s.Vocabulary), s.SequenceLength, len(s.Classes))
		},
		// The paper's 6.0 M parameters mean some 18,764 words; the longest sentence
		// of MR has 59.
		Full:      func() (*compute.Program, error) { return textCNN(width, filters, vocabulary, 59, 2) },
		Optimizer: optimizer, Batch: 50, Epochs: 200,
	}
}

// textCNN classifies sentences of length words of a vocabulary. ReLU comes after
// the maximum over time, where it does the same on fewer values.
func textCNN(width, filters, vocabulary, length, classes int) (*compute.Program, error) {
	init := optim.Init{Kind: optim.Uniform, Scale: 0.1} // biases start at zero
	n := nn.New("cnn-rand")
	words := n.Embedding("embed", n.Ints("tokens", length, vocabulary), width, init)
	features := n.ReLU(n.Concat(
		n.ConvMax("conv3", words, 3, filters, init),
		n.ConvMax("conv4", words, 4, filters, init),
		n.ConvMax("conv5", words, 5, filters, init)))
	n.SoftmaxCrossEntropy(n.Dense("fc", features, classes, init), n.Ints("label", 1, classes))
	return n.Program()
}

func defaultTo(n, standard int) int {
	if n == 0 {
		return standard
	}
	return n
}
